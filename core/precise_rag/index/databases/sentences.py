"""Documents as rows of a database: one vector and the counted words of each sentence.

The dense score of `HybridIndex` is linear in the vectors, so one vector gives it as an inner product with
the query q:

    w = alpha * s + (1 - alpha) / 2 * (p + r)

s, p and r are the unit vectors of the sentence, of its passage and of its surroundings; p and r are
token-weighted means. Words are counted at the same three scales, for BM25; see `counted`. Databases find
the best rows by the weights of the sentence's own words, of all scales together:

    tf / (tf + k1 * (1 - b + b * length / usual length))

The usual lengths are constants there, so that a row never depends on other documents. The idf belongs to
the query.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import passage_ids
from precise_rag.index.arrays.words import word_numbers
from precise_rag.index.databases.counted import SCALES, packed
from precise_rag.index.databases.document_headings import Headings
from precise_rag.index.databases.values import StoredDocument, StoredSentence
from precise_rag.index.hybrid import HybridSettings
from precise_rag.sentences.words import trim_spans
from precise_rag.titles import joined_titles, saved_titles, titles_of
from precise_rag.types import Document, FloatArray, IntArray, SentenceTable, Span
from precise_rag.vectors import unit_rows

_USUAL_LENGTHS = np.array([11, 90, 180])
"""Words of a usual sentence, passage and surroundings, without stop words."""


def digest(document: Document, settings: HybridSettings) -> str:
    """Hash of what decides a document's rows: its text and, if headings count, its title."""
    title = joined_titles(titles_of(document.metadata)) if settings.headings else ""
    content = f"{len(document.text)} {document.text}{title}"
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def stored(
    document: Document, table: SentenceTable, settings: HybridSettings, headings: Headings | None = None
) -> StoredDocument:
    """The rows of a document. table: its sentences with their vectors. headings: those above them."""
    assert table.vectors is not None
    if not len(table):
        return StoredDocument(document.id, digest(document, settings), document.metadata, ())
    spans = trim_spans(document.text, table.spans)
    scales = [Groups.by_change(passage_ids(document, table, settings.passages))]
    if settings.surroundings is not None:
        scales.append(Groups.by_change(passage_ids(document, table, settings.surroundings)))
    vectors = weighted_vectors(table.vectors, table.n_tokens, scales, settings.alpha, headings)
    words = [word_numbers(document.text[a:b], settings.stop_words) for a, b in spans]
    counted = _counted(words, scales, headings)
    passages = scales[0].spans(spans)[scales[0].of_row]
    starts = [*map(int, spans[:, 0]), len(document.text)]
    rows = [
        StoredSentence(
            start=int(spans[i][0]),
            end=int(spans[i][1]),
            n_tokens=int(table.n_tokens[i]),
            passage=Span(*map(int, passages[i])),
            text=document.text[starts[i] : starts[i + 1]],
            above="" if headings is None else saved_titles(headings.above[headings.of_row[i]]),
            vector=vectors[i],
            words=counted[i].terms[counted[i].counts[:, 0] > 0],
            weights=_weights(counted[i], settings),
            counted=packed(*counted[i]),
        )
        for i in range(len(spans))
    ]
    return StoredDocument(document.id, digest(document, settings), document.metadata, rows)


def weighted_vectors(
    vectors: FloatArray,
    n_tokens: IntArray,
    scales: Sequence[Groups],
    alpha: float,
    headings: Headings | None = None,
) -> FloatArray:
    """(n, d) `w` of the module's formula.

    vectors: (n, d) vectors of one document's sentences, of unit length.
    n_tokens: (n,) tokens of each sentence.
    scales: the sentences of each passage, and of each of the surroundings.
    alpha: weight of the sentence (0 to 1).
    headings: those above the sentences.
    """
    weights = np.maximum(n_tokens, 1)[:, None]
    total = alpha * vectors
    for groups in scales:
        sums = groups.sums((vectors * weights).astype(np.float64))
        if headings is not None:
            sums = sums + headings.sums(groups)
        means = unit_rows(sums.astype(np.float32))
        total = total + (1 - alpha) / len(scales) * means[groups.of_row]
    return total.astype(np.float32)


class _Counted(NamedTuple):
    """What `packed` takes."""

    terms: IntArray
    counts: IntArray
    lengths: IntArray
    sizes: IntArray


def _counted(
    words: Sequence[IntArray], scales: Sequence[Groups], headings: Headings | None
) -> list[_Counted]:
    """The words of each sentence and around it; words: the numbers of the words of each, as they come."""
    texts = [list(words)]
    for groups in scales:
        ends = (groups.starts + groups.sizes).tolist()
        above = [
            [] if headings is None else headings.words_of(first, end)
            for first, end in zip(groups.starts.tolist(), ends, strict=True)
        ]
        of_group = [
            np.concatenate([*its, *words[first:end]])
            for its, first, end in zip(above, groups.starts.tolist(), ends, strict=True)
        ]
        texts.append(of_group)
    numbered = [[np.unique(text, return_counts=True) for text in of_scale] for of_scale in texts]
    made = []
    for i in range(len(words)):
        of_row = [i, *(int(groups.of_row[i]) for groups in scales)]
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


def _weights(row: _Counted, settings: HybridSettings) -> FloatArray:
    """(k,) weights of the sentence's own words, ascending by their numbers."""
    counts = row.counts[row.counts[:, 0] > 0].astype(np.float64)
    norms = settings.k1 * (1 - settings.b + settings.b * row.lengths / _USUAL_LENGTHS)
    n_wider = np.count_nonzero(row.sizes) - 1
    shares = np.array([settings.alpha, *[(1 - settings.alpha) / n_wider] * (SCALES - 1)])
    weights: npt.NDArray[np.float64] = counts / np.maximum(counts + norms, 1) @ shares
    return weights.astype(np.float32)
