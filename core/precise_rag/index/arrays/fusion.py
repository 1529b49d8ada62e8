"""Fusion of several scores into one: a weighted sum of min-max scores (ChunkRAG: weights 0.5 and 0.5)."""

from collections.abc import Callable, Sequence

import numpy as np

from precise_rag.index.arrays.top import fair_rows
from precise_rag.types import FloatArray, IntArray


def min_max(scores: FloatArray) -> FloatArray:
    """(n,) scores scaled linearly to [0, 1]; zeros if all are equal."""
    low, high = scores.min(), scores.max()
    scaled: FloatArray = scores - low
    if high > low:
        scaled /= high - low
    return scaled


def pooled(parts: Sequence[FloatArray], pool: int, drawn: Callable[[IntArray], IntArray]) -> IntArray:
    """The rows that are among the `pool` best of one part, ascending.

    parts: (n,) scores of all rows. drawn: see `fair_rows`.
    """
    rows: IntArray = np.unique(np.concatenate([fair_rows(part, pool, drawn) for part in parts]))
    return rows


def weighted_sum(parts: Sequence[FloatArray], weights: Sequence[float]) -> FloatArray:
    """(n,) weighted sum of min-max scores.

    parts: (n,) scores of the pooled rows, one array per kind of score.
    weights: one per part.
    Differs from ChunkRAG: a row found by one part has its true score in the other parts, too.
    """
    total = np.zeros(len(parts[0]), dtype=np.float32)
    for weight, part in zip(weights, parts, strict=True):
        total += weight * min_max(part)
    return total


def z_score(scores: FloatArray, score: float) -> float:
    """Standard deviations from the mean of `scores` to `score`; 0 if all of them are equal."""
    spread = float(scores.std())
    return (score - float(scores.mean())) / spread if spread > 0 else 0.0
