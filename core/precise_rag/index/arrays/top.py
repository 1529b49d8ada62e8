"""The best rows of an array of scores."""

import numpy as np

from precise_rag.types import FloatArray, IntArray


def top_rows(scores: FloatArray, top_k: int) -> IntArray:
    """The rows of the `top_k` best scores, best first; equal scores keep row order."""
    if top_k < len(scores):
        threshold = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
        rows = np.flatnonzero(scores >= threshold)
    else:
        rows = np.arange(len(scores))
    order: IntArray = rows[np.argsort(-scores[rows], kind="stable")][:top_k]
    return order
