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
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.heading_columns import WEIGHT, Headings, headings_above
from precise_rag.index.arrays.words import WORD_COLUMNS, Vocabulary, word_number
from precise_rag.index.databases.counted import SCALES, packed
from precise_rag.index.folder import check_metadata
from precise_rag.index.hybrid import HybridScheme, HybridSettings, level_groups
from precise_rag.index.queries import query_direction
from precise_rag.protocols import Encoder
from precise_rag.sentences.words import has_words
from precise_rag.titles import joined_titles, saved_titles, titles_of
from precise_rag.types import Document, FloatArray, IntArray, Span
from precise_rag.vectors import unit_rows

_USUAL_LENGTHS = np.array([11, 90, 180])
"""Words of a usual sentence, passage and surroundings, without stop words."""


class StoredSentence(NamedTuple):
    """A sentence as a row.

    start, end: place of the sentence in the document, without the white space around it.
    n_tokens: its tokens.
    passage: span of its passage.
    text: the document's text from the sentence to the next one.
    above: the title and the headings above it, as `saved_titles` writes them.
    vector: (d,) float32; its inner product with a query's vector is the dense score.
    words: numbers of the words in the sentence, ascending; see `word_number`.
    weights: (len(words),) float32 weight of each; the sum of `weight * idf` over a query's words orders
        rows by words.
    counted: the words in the sentence and around it; see `packed`.
    """

    start: int
    end: int
    n_tokens: int
    passage: Span
    text: str
    above: str
    vector: FloatArray
    words: IntArray
    weights: FloatArray
    counted: bytes


class StoredDocument(NamedTuple):
    """A document and its rows; a document without text has none.

    id: the document's id.
    digest: hash of the text and the title, which decide its rows.
    metadata: the document's metadata; JSON.
    sentences: its rows, in order.
    """

    id: str
    digest: str
    metadata: Mapping[str, Any]
    sentences: Sequence[StoredSentence]


def digest(document: Document, settings: HybridSettings) -> str:
    """Hash of what decides a document's rows: its text and, if headings count, its title."""
    title = joined_titles(titles_of(document.metadata)) if settings.headings else ""
    content = f"{len(document.text)} {document.text}{title}"
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def check_document(document: Document) -> None:
    """Raise InputError unless a database can hold a document."""
    about, metadata = f"document {document.id!r}", dict(document.metadata)
    for name, text in (("its id", document.id), ("its text", document.text)):
        _check_text(f"{about}: {name}", text)
    try:
        check_metadata(metadata)
        for field, value in metadata.items():
            _check_text(f"{about}: its metadata {field!r}", json.dumps([field, value], ensure_ascii=False))
    except InputError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{about}: metadata cannot be saved as JSON: {error}") from error


def _check_text(what: str, text: str) -> None:
    if has_half_character(text):
        raise InputError(f"{what} cannot be stored: no database holds half of a character (a lone surrogate)")


def rows_of_documents(
    documents: Sequence[Document],
    encoder: Encoder,
    settings: HybridSettings,
    vectors: Mapping[str, FloatArray],
    show_progress: bool,
) -> list[StoredDocument]:
    """Return the rows of documents, in order.

    vectors: by document id, (d,) vectors that stand for all sentences of a document, which is not encoded.
    """
    scheme = HybridScheme(
        encoder,
        passages=settings.passages,
        surroundings=settings.surroundings,
        headings=settings.headings,
        stop_words=settings.stop_words,
    )
    words = Vocabulary(scheme.stop_words)
    with_text = [document for document in documents if has_words(document.text)]
    encoded = [document for document in with_text if document.id not in vectors]
    not_encoded = [document for document in with_text if document.id in vectors]
    blocks = list(scheme.read(encoded, words, show_progress))
    blocks_of_vectors = []
    for document, table in scheme.tables(not_encoded, False, vectors=False):
        direction = query_direction(vectors[document.id], encoder.dimension)
        table = replace(table, vectors=np.tile(direction, (len(table), 1)))
        blocks_of_vectors.append(scheme.columns(document, table, words))
    sentences: dict[str, Sequence[StoredSentence]] = {
        **_sentences(encoded, blocks, words, settings),
        **_sentences(not_encoded, blocks_of_vectors, words, settings),
    }
    return [
        StoredDocument(
            document.id, digest(document, settings), document.metadata, sentences.get(document.id, ())
        )
        for document in documents
    ]


def _sentences(
    documents: Sequence[Document], blocks: Sequence[Columns], words: Vocabulary, settings: HybridSettings
) -> dict[str, list[StoredSentence]]:
    """The rows of documents with text, by id. blocks: the columns of each. words: numbers their words."""
    if not documents:
        return {}
    numbers = np.array([word_number(word) for word in words.words()], dtype=np.int32)
    rows = Collection.of(documents, blocks)
    texts = {name: numbers[rows.columns[name]] for name in WORD_COLUMNS if name in rows.columns}
    columns = {**rows.columns, **texts}
    scales, headings = level_groups(rows), Headings.of(columns)
    vectors = _weighted_vectors(columns, scales, headings, settings.alpha)
    counted = _counted(columns, scales, headings)
    made: dict[str, list[StoredSentence]] = {}
    for document, first, end in zip(documents, rows.offsets[:-1], rows.offsets[1:], strict=True):
        spans = columns["spans"][first:end]
        starts = [*spans[:, 0].tolist(), len(document.text)]
        above = map(saved_titles, headings_above(document, spans)) if headings is not None else None
        made[document.id] = [
            StoredSentence(
                start=starts[place],
                end=int(spans[place, 1]),
                n_tokens=int(columns["n_tokens"][row]),
                passage=Span(*columns["passage_spans"][row].tolist()),
                text=document.text[starts[place] : starts[place + 1]],
                above="" if above is None else next(above),
                vector=vectors[row],
                words=counted[row].terms[counted[row].counts[:, 0] > 0],
                weights=_weights(counted[row], settings),
                counted=packed(*counted[row]),
            )
            for place, row in enumerate(range(first, end))
        ]
    return made


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


class _Counted(NamedTuple):
    """What `packed` takes."""

    terms: IntArray
    counts: IntArray
    lengths: IntArray
    sizes: IntArray


def _counted(columns: Columns, scales: Sequence[Groups], headings: Headings | None) -> list[_Counted]:
    """The words of each sentence and around it."""
    words, n_words = columns["words.values"], columns["words.lengths"]
    texts = [_split(words, n_words)]
    for groups in scales:
        if headings is None:
            texts.append(_split(words, np.add.reduceat(n_words, groups.starts)))
        else:
            texts.append(_split(*headings.words_with(columns, groups)))
    numbered = [[np.unique(text, return_counts=True) for text in of_scale] for of_scale in texts]
    made = []
    for row in range(len(n_words)):
        of_row = [row, *(int(groups.of_row[row]) for groups in scales)]
        parts = [numbered[scale][text] for scale, text in enumerate(of_row)]
        terms = np.unique(np.concatenate([part for part, _ in parts]))
        counts = np.zeros((len(terms), SCALES), dtype=np.int64)
        lengths, sizes = np.zeros((2, SCALES), dtype=np.int64)
        for scale, ((part, its), text) in enumerate(zip(parts, of_row, strict=True)):
            counts[np.searchsorted(terms, part), scale] = its
            lengths[scale] = len(texts[scale][text])
            sizes[scale] = 1 if not scale else scales[scale - 1].sizes[text]
        made.append(_Counted(terms, counts, lengths, sizes))
    return made


def _split(words: npt.NDArray[np.int32], lengths: IntArray) -> list[npt.NDArray[np.int32]]:
    """The words of each text, of those of all texts."""
    return np.split(words, np.cumsum(lengths)[:-1])


def _weights(row: _Counted, settings: HybridSettings) -> FloatArray:
    """(k,) weights of the sentence's own words, ascending by their numbers."""
    counts = row.counts[row.counts[:, 0] > 0].astype(np.float64)
    norms = settings.k1 * (1 - settings.b + settings.b * row.lengths / _USUAL_LENGTHS)
    n_wider = np.count_nonzero(row.sizes) - 1
    shares = np.array([settings.alpha, *[(1 - settings.alpha) / n_wider] * (SCALES - 1)])
    weights: npt.NDArray[np.float64] = counts / np.maximum(counts + norms, 1) @ shares
    return weights.astype(np.float32)
