"""Words of a sentence, of its passage and of its surroundings, counted, as the bytes of a row; their BM25.

The rows of a pool are scored as in HybridIndex: by BM25 at each scale, with the usual length of the texts of
that scale. Differs: a row knows no other documents, so what is usual is read from a random sample of rows;
and words are counted in sentences alone. If a share p of the sentences has a word, it is taken to be in

    1 - (1 - p)^k

of the texts of k sentences.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.index.bm25 import BM25Settings, idf, words_found
from precise_rag.types import BoolArray, FloatArray, IntArray
from precise_rag.vectors import offsets_of, slice_places

SCALES = 3
"""Sentence, passage and surroundings."""
_HEAD = 1 + 2 * SCALES
HEAD_BYTES = 4 * _HEAD
"""The first bytes of a row, with the lengths and sizes of its texts."""
_MOST = 255
"""Up to which a word is counted."""


class CountedRows(NamedTuple):
    """The words of n rows.

    lengths: (n, SCALES) words of the sentence, its passage and its surroundings; 0 for a scale without texts.
    sizes: (n, SCALES) sentences of each.
    n_terms: (n,) distinct words of each row, at all scales.
    terms: (sum of n_terms,) their numbers, ascending, one row after another.
    counts: (sum of n_terms, SCALES) how often each is there.
    """

    lengths: IntArray
    sizes: IntArray
    n_terms: IntArray
    terms: npt.NDArray[np.int32]
    counts: npt.NDArray[Any]


class Usual(NamedTuple):
    """Of the texts of each scale, (SCALES,): words, and sentences."""

    lengths: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.float64]


def packed(rows: CountedRows) -> list[bytes]:
    """Return the bytes of each row, a multiple of 4."""
    as_bytes = np.zeros((len(rows.terms), 4), dtype=np.uint8)
    as_bytes[:, :SCALES] = np.minimum(rows.counts, _MOST)
    counts, ends = as_bytes.view("<i4").ravel(), np.cumsum(rows.n_terms)
    made = []
    for row, (first, end) in enumerate(zip(ends - rows.n_terms, ends, strict=True)):
        of_row = slice(first, end)
        parts = ([end - first], rows.lengths[row], rows.sizes[row], rows.terms[of_row], counts[of_row])
        made.append(np.concatenate(parts).astype("<i4").tobytes())
    return made


def unpacked(rows: Sequence[bytes]) -> CountedRows:
    """Return rows from the bytes of each."""
    values = np.frombuffer(b"".join(rows), dtype="<i4")
    starts = offsets_of([len(row) // 4 for row in rows])[:-1]
    n_terms = values[starts].astype(np.int64)
    head = values[starts[:, None] + np.arange(1, _HEAD)].astype(np.int64)
    terms = values[slice_places(starts + _HEAD, n_terms)]
    counts = values[slice_places(starts + _HEAD + n_terms, n_terms)].view(np.uint8).reshape(-1, 4)
    return CountedRows(head[:, :SCALES], head[:, SCALES:], n_terms, terms, counts[:, :SCALES])


def usual(heads: Sequence[bytes]) -> Usual:
    """Return what is usual among the texts of a random sample of rows, by their first `HEAD_BYTES`."""
    head = np.frombuffer(b"".join(heads), dtype="<i4").reshape(-1, _HEAD)
    lengths, sizes = head[:, 1 : 1 + SCALES], head[:, 1 + SCALES :]
    shares = 1 / np.maximum(sizes, 1)  # a text is drawn as often as it has sentences
    totals = shares.sum(axis=0)
    return Usual(np.maximum((lengths * shares).sum(axis=0) / totals, 1), len(shares) / totals)


def having(rows: CountedRows, terms: IntArray) -> BoolArray:
    """(n,) whether the sentence of each row has all of some distinct words."""
    owners = np.repeat(np.arange(len(rows.n_terms)), rows.n_terms)
    has = np.isin(rows.terms, terms) & (rows.counts[:, 0] > 0)
    has_all: BoolArray = np.bincount(owners[has], minlength=len(rows.n_terms)) == len(terms)
    return has_all


def bm25(
    rows: CountedRows,
    terms: IntArray,
    frequencies: IntArray,
    n_rows: int,
    usual: Usual,
    settings: BM25Settings,
) -> tuple[list[FloatArray], list[float]]:
    """(n,) BM25 of the rows' texts at each scale, and what `words_found` says of each.

    terms: (k,) words of the query, ascending. frequencies: (k,) sentences that have each. n_rows: sentences.
    """
    if not len(terms):
        return [np.zeros(len(rows.n_terms), dtype=np.float32)] * SCALES, [0.0] * SCALES
    places = np.minimum(np.searchsorted(terms, rows.terms), len(terms) - 1)
    hits = np.flatnonzero(terms[places] == rows.terms)
    places, owners = places[hits], np.repeat(np.arange(len(rows.n_terms)), rows.n_terms)[hits]
    share = np.minimum(frequencies / max(n_rows, 1), 1)
    scores, found = [], []
    for scale in range(SCALES):
        n_texts = n_rows / usual.sizes[scale]
        weights = idf(n_texts * (1 - (1 - share) ** usual.sizes[scale]), n_texts)
        counts = rows.counts[hits, scale].astype(np.float64)
        length = rows.lengths[owners, scale] / usual.lengths[scale]
        norms = settings.k1 * (1 - settings.b + settings.b * length)
        shares = weights[places] * counts / np.maximum(counts + norms, 1)  # 0 for a count of 0
        scores.append(np.bincount(owners, shares, minlength=len(rows.n_terms)).astype(np.float32))
        found.append(words_found(scores[-1], weights, settings))
    return scores, found
