"""Several scores to one: min-max to [0, 1] over the union of each one's best (ChunkRAG: 0.5 / 0.5)."""

from collections.abc import Sequence

import numpy as np

from precise_rag.index.arrays.top import top_rows
from precise_rag.types import FloatArray


def min_max(scores: FloatArray) -> FloatArray:
    """(n,) scores stretched to [0, 1]; all 0 if they are all equal."""
    low, high = scores.min(), scores.max()
    stretched: FloatArray = (scores - low) / (high - low) if high > low else np.zeros_like(scores)
    return stretched


def fuse(parts: Sequence[FloatArray], weights: Sequence[float], pool: int) -> FloatArray:
    """(n,) the weighted sum of min-max scores over the union of each part's `pool` best rows.

    parts: (n,) scores of all rows, so that a row in one part's best has its true score in the others
    too. Rows outside the union get -inf.
    """
    union = np.unique(np.concatenate([top_rows(part, pool) for part in parts]))
    fused = np.full(len(parts[0]), -np.inf, dtype=np.float32)
    fused[union] = sum(w * min_max(part[union]) for w, part in zip(weights, parts, strict=True))
    return fused


def standing_out(scores: FloatArray) -> float:
    """By how many standard deviations the best score exceeds the mean; 0 if all are equal."""
    spread = float(scores.std())
    return (float(scores.max()) - float(scores.mean())) / spread if spread > 0 else 0.0
