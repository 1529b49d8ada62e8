"""Documents as rows of a database: one vector and one set of weighted words for each sentence.

The dense score of `HybridIndex` is linear in the vectors, so one vector gives it as an inner product with
the query q:

    w = alpha * s + (1 - alpha) / 2 * (p + r)

s, p and r are the unit vectors of the sentence, of its passage and of its surroundings; p and r are
token-weighted means. Words are weighted in the same way, each scale by the part of BM25 that does not depend
on the query, tf / (tf + k1 * (1 - b + b * length / usual length)). The idf belongs to the query. Differs from
`HybridIndex`: the usual lengths are constants, so that a row never depends on other documents; and the
scales are not brought to one range before they are added.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import passage_ids
from precise_rag.index.arrays.spans import trim_spans
from precise_rag.index.databases.engine import StoredDocument, StoredSentence
from precise_rag.index.databases.headings import Headings
from precise_rag.index.databases.words import word_numbers
from precise_rag.index.hybrid import HybridSettings
from precise_rag.titles import title_of
from precise_rag.types import Document, FloatArray, IntArray, SentenceTable, Span
from precise_rag.vectors import unit_rows

_USUAL_LENGTHS = (11, 90, 180)
"""Words of a usual sentence, passage and surroundings, without stop words."""


def digest(document: Document, settings: HybridSettings) -> str:
    """Hash of what decides a document's rows: its text and, if headings count, its title."""
    title = title_of(document.metadata) if settings.headings else ""
    content = f"{document.text}\0{title}" if title else document.text
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
    weighted = _weighted_words(words, scales, settings, headings)
    passages = scales[0].spans(spans)[scales[0].of_row]
    starts = [*map(int, spans[:, 0]), len(document.text)]
    rows = [
        StoredSentence(
            start=int(spans[i][0]),
            end=int(spans[i][1]),
            n_tokens=int(table.n_tokens[i]),
            passage=Span(*map(int, passages[i])),
            text=document.text[starts[i] : starts[i + 1]],
            above="" if headings is None else headings.texts[headings.of_row[i]],
            vector=vectors[i],
            words=np.unique(words[i]),
            terms=weighted[i][0],
            weights=weighted[i][1],
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


def _weighted_words(
    words: Sequence[IntArray],
    scales: Sequence[Groups],
    settings: HybridSettings,
    headings: Headings | None,
) -> list[tuple[IntArray, FloatArray]]:
    """Terms and weights of each sentence; words: the numbers of the words of each, repeated as they are."""
    own = [_weights([row], _USUAL_LENGTHS[0], settings) for row in words]
    wider = []
    for usual, groups in zip(_USUAL_LENGTHS[1:], scales, strict=False):
        ends = groups.starts + groups.sizes
        of_group = []
        for first, end in zip(groups.starts.tolist(), ends.tolist(), strict=True):
            above = [] if headings is None else headings.words_of(first, end)
            of_group.append(_weights([*above, *words[first:end]], usual, settings))
        wider.append([of_group[group] for group in groups.of_row])
    share = (1 - settings.alpha) / len(scales)
    return [
        _added([(settings.alpha, *own[i]), *((share, *scale[i]) for scale in wider)])
        for i in range(len(words))
    ]


def _weights(
    words: Sequence[IntArray], usual: int, settings: HybridSettings
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    terms, counts = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *words]), return_counts=True)
    length = counts.sum()
    return terms, counts / (counts + settings.k1 * (1 - settings.b + settings.b * length / usual))


def _added(
    parts: Iterable[tuple[float, IntArray, npt.NDArray[np.float64]]],
) -> tuple[IntArray, FloatArray]:
    parts = list(parts)
    every, places = np.unique(np.concatenate([terms for _, terms, _ in parts]), return_inverse=True)
    values = np.concatenate([share * weights for share, _, weights in parts])
    return every, np.bincount(places, values, minlength=len(every)).astype(np.float32)
