"""Fusion of several scores into one: a weighted sum of min-max scores (ChunkRAG: weights 0.5 and 0.5)."""

from collections.abc import Sequence

import numpy as np

from precise_rag.index.arrays.top import top_rows
from precise_rag.types import FloatArray


def min_max(scores: FloatArray) -> FloatArray:
    """(n,) scores scaled linearly to [0, 1]; zeros if all are equal."""
    low, high = scores.min(), scores.max()
    scaled: FloatArray = (scores - low) / (high - low) if high > low else np.zeros_like(scores)
    return scaled


def fuse(parts: Sequence[FloatArray], weights: Sequence[float], pool: int) -> FloatArray:
    """(n,) weighted sum of min-max scores over the union of each part's `pool` best rows.

    parts: (n,) scores of all rows, one array per kind of score.
    weights: one per part.
    pool: number of best rows of each part; a row outside the union scores -inf.
    Differs from ChunkRAG: a row found by one part has its true score in the other parts, too.
    """
    union = np.unique(np.concatenate([top_rows(part, pool) for part in parts]))
    fused = np.full(len(parts[0]), -np.inf, dtype=np.float32)
    fused[union] = sum(w * min_max(part[union]) for w, part in zip(weights, parts, strict=True))
    return fused


def z_score(scores: FloatArray, score: float) -> float:
    """Standard deviations from the mean of `scores` to `score`; 0 if all of them are equal."""
    spread = float(scores.std())
    return (score - float(scores.mean())) / spread if spread > 0 else 0.0
