"""Documents as rows of a database: one vector and the counted words of each sentence.

The columns are those of `HybridIndex`. Its dense score is linear in the vectors, so one vector gives it as
an inner product with the query q:

    w = alpha * s + (1 - alpha) / 2 * (p + r)

s, p and r are the unit vectors of the sentence, of its passage and of its surroundings; p and r are
token-weighted means. Words are counted at the same three scales, for BM25; see `counted`. The database finds
the best rows by the weights of the sentence's own words, of all scales together:

    tf / (tf + k1 * (1 - b + b * length / usual length))

The usual lengths are constants there, so that a row never depends on other documents. The idf belongs to
the query.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.filters.values import has_half_character
from precise_rag.index.bm25 import words_of_texts
from precise_rag.index.databases.counted import SCALES, CountedRows, packed
from precise_rag.index.databases.filters import unescaped_json
from precise_rag.index.folder import document_line
from precise_rag.index.groups import Groups
from precise_rag.index.headings import WEIGHT, Headings
from precise_rag.index.hybrid import HybridSettings, hybrid_columns, level_groups
from precise_rag.index.ranking import LOTTERY, draws, seeds_of
from precise_rag.index.table import Columns, Shard
from precise_rag.protocols import Encoder
from precise_rag.sentences.trimming import has_words
from precise_rag.titles import joined_titles, saved_titles, titles_read
from precise_rag.types import BoolArray, Document, FloatArray, IntArray
from precise_rag.vectors import slice_places, unit_rows

_PER_ROW = 2**32
"""More than any number of a word."""
_USUAL_LENGTHS = np.array([11, 90, 180])
"""Words of a usual sentence, passage and surroundings, without stop words."""


class StoredSentence(NamedTuple):
    """A sentence as a row: the columns of the table of sentences from `start` on, and `weights` of postings.

    start, stop: place of the sentence in the document, without the white space around it.
    passage_start, passage_end: place of its passage.
    lottery: its draw, below `LOTTERY`; see `precise_rag.index.ranking`.
    text: the document's text from the sentence to the next one.
    above: the title and the headings above it, as `saved_titles` writes them.
    terms: numbers of the words in the sentence, ascending; see `word_number`.
    vector: d numbers, as text; their inner product with a query's vector is the dense score.
    counted: the words in the sentence and around it; see `packed`.
    weights: of each term, in `postings`; the sum of `weight * idf` over a query's words orders rows by words.
    """

    start: int
    stop: int
    n_tokens: int
    passage_start: int
    passage_end: int
    lottery: int
    text: str
    above: str
    terms: list[int]
    vector: str
    counted: bytes
    weights: list[float]


class StoredDocument(NamedTuple):
    """A document and its rows; a document without text has none.

    digest: hash of the text and the title, which decide its rows.
    metadata: the document's metadata; JSON.
    sentences: its rows, in order.
    """

    id: str
    digest: str
    metadata: Mapping[str, Any]
    sentences: Sequence[StoredSentence]


def digest(document: Document, settings: HybridSettings) -> str:
    """Hash of what decides a document's rows: its text and, if headings count, its titles."""
    titles, n_own = titles_read(document.metadata) if settings.headings else ((), 0)
    headings = "\n" * (len(titles) - n_own)
    content = f"{len(document.text)} {document.text}{joined_titles(titles)}{headings}"
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def checked_document(document: Document) -> Document:
    """Return a document. Raises InputError unless a database can hold it."""
    document_line(document)
    texts = {"its id": document.id, "its text": document.text}
    texts |= {f"its metadata {key!r}": unescaped_json([key, its]) for key, its in document.metadata.items()}
    for name, text in texts.items():
        what = f"document {document.id!r}: {name} cannot be stored"
        if has_half_character(text):
            raise InputError(f"{what}: no database holds half of a character (a lone surrogate)")
        if "\0" in text:
            raise InputError(f"{what}: PostgreSQL holds no NUL character")
    return document


def rows_of_documents(
    documents: Sequence[Document], encoder: Encoder, settings: HybridSettings, show_progress: bool
) -> list[StoredDocument]:
    """Return the rows of documents, in order."""
    read_as = replace(settings, precision="float32")
    with_text = [document for document in documents if has_words(document.text)]
    read = zip(with_text, hybrid_columns(with_text, encoder, read_as, show_progress), strict=True)
    rows = {document.id: _sentences(document, columns, settings) for document, columns in read}
    return [StoredDocument(d.id, digest(d, settings), d.metadata, rows.get(d.id, [])) for d in documents]


def _sentences(document: Document, columns: Columns, settings: HybridSettings) -> list[StoredSentence]:
    shard = Shard.of([document], [columns])
    scales, headings = level_groups(shard), Headings.of(shard)
    spans, passages, n_tokens = columns["spans"], columns["passage_spans"], columns["n_tokens"].tolist()
    starts = [*spans[:, 0].tolist(), len(document.text)]
    vectors = _weighted_vectors(columns, scales, headings, settings.alpha)
    counted = _counted(columns, scales, headings)
    in_sentence = counted.counts[:, 0] > 0
    owners = np.repeat(np.arange(len(spans)), counted.n_terms)[in_sentence]
    ends = np.cumsum(np.bincount(owners, minlength=len(spans)))[:-1]
    words = np.split(counted.terms[in_sentence], ends)
    weights = np.split(_weights(counted, owners, in_sentence, settings), ends)
    drawn = draws(seeds_of([document.id]), range(len(spans))) % LOTTERY
    return [
        StoredSentence(
            start=starts[place],
            stop=int(spans[place, 1]),
            n_tokens=n_tokens[place],
            passage_start=int(passages[place, 0]),
            passage_end=int(passages[place, 1]),
            lottery=int(drawn[place]),
            text=document.text[starts[place] : starts[place + 1]],
            above="" if headings is None else saved_titles(headings.above(place)).replace("\0", "\ufffd"),
            terms=words[place].tolist(),
            vector=json.dumps(vectors[place].tolist()),
            counted=as_bytes,
            weights=weights[place].tolist(),
        )
        for place, as_bytes in enumerate(packed(counted))
    ]


def _weighted_vectors(
    columns: Columns, scales: Sequence[Groups], headings: Headings | None, alpha: float
) -> FloatArray:
    """(n, d) `w` of the module's formula. scales: the rows of each passage, and of the surroundings."""
    vectors, weights = columns["vectors"], np.maximum(columns["n_tokens"], 1)[:, None]
    total = alpha * vectors
    for groups in scales:
        sums = groups.sums((vectors * weights).astype(np.float64))
        if headings is not None:
            sums = sums + WEIGHT * headings.vectors[headings.of_row[groups.starts]]
        means = unit_rows(sums.astype(np.float32))
        total = total + (1 - alpha) / len(scales) * means[groups.of_row]
    return total.astype(np.float32)


def _counted(columns: Columns, scales: Sequence[Groups], headings: Headings | None) -> CountedRows:
    rows = np.arange(len(columns["spans"]))
    lengths, sizes = np.zeros((2, len(rows), SCALES), dtype=np.int64)
    found = []
    for scale, groups in enumerate((Groups.by_change(rows), *scales)):
        words, texts = words_of_texts(columns, groups, headings if scale else None)
        words = words[np.argsort(texts, kind="stable")]
        n_in_text = np.bincount(texts, minlength=len(groups.starts))
        lengths[:, scale], sizes[:, scale] = n_in_text[groups.of_row], groups.sizes[groups.of_row]
        starts = (np.cumsum(n_in_text) - n_in_text)[groups.of_row]
        around = words[slice_places(starts, lengths[:, scale])]
        found.append(np.repeat(rows, lengths[:, scale]) * _PER_ROW + around)
    distinct, places = np.unique(np.concatenate(found), return_inverse=True)
    counts = np.zeros((len(distinct), SCALES), dtype=np.int64)
    np.add.at(counts, (places, np.repeat(np.arange(len(found)), list(map(len, found)))), 1)
    n_terms = np.bincount(distinct // _PER_ROW, minlength=len(rows))
    return CountedRows(lengths, sizes, n_terms, (distinct % _PER_ROW).astype(np.int32), counts)


def _weights(
    rows: CountedRows, owners: IntArray, in_sentence: BoolArray, settings: HybridSettings
) -> FloatArray:
    """(k,) weights of the words in sentences; owners: (k,) row of each. in_sentence: which words they are."""
    counts = rows.counts[in_sentence].astype(np.float64)
    norms = settings.k1 * (1 - settings.b + settings.b * rows.lengths[owners] / _USUAL_LENGTHS)
    n_wider = np.count_nonzero(rows.sizes[0]) - 1
    shares = np.array([settings.alpha, *[(1 - settings.alpha) / n_wider] * (SCALES - 1)])
    weights: npt.NDArray[np.float64] = counts / np.maximum(counts + norms, 1) @ shares
    return weights.astype(np.float32)
