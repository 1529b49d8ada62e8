"""The best rows of an array of scores."""

from collections.abc import Callable

import numpy as np

from precise_rag.index.arrays.draws import LARGEST
from precise_rag.types import FloatArray, IntArray

_BLOCK = 256
"""Most scores in a block."""


def top_rows(scores: FloatArray, top_k: int) -> IntArray:
    """The rows of the `top_k` best scores, best first; equal scores keep row order."""
    if top_k >= len(scores):
        order: IntArray = np.argsort(-scores, kind="stable")
        return order
    bound = _bound(scores, top_k)
    above = np.flatnonzero(scores > bound)
    if len(above) >= top_k:
        values = scores[above]
        above = above[values >= np.partition(values, len(values) - top_k)[len(values) - top_k]]
    best: IntArray = above[np.argsort(-scores[above], kind="stable")][:top_k]
    if len(best) == top_k:
        return best
    return np.append(best, np.flatnonzero(scores == bound)[: top_k - len(best)])


def fair_rows(scores: FloatArray, top_k: int, drawn: Callable[[IntArray], IntArray]) -> IntArray:
    """The rows of the `top_k` best scores, ascending; of equal ones at the end, those with the lowest draws.

    drawn: gives the draws of some rows, see `precise_rag.index.arrays.draws`.
    """
    best = top_rows(scores, top_k)
    least = scores[best[-1]]
    equal = np.flatnonzero(scores == least)
    above = best[scores[best] > least]
    return np.sort(np.append(above, _lowest(equal, top_k - len(above), drawn)))


def _lowest(rows: IntArray, n_wanted: int, drawn: Callable[[IntArray], IntArray]) -> IntArray:
    """The rows with the lowest draws."""
    if len(rows) <= n_wanted:
        return rows
    numbers = drawn(rows)
    few = np.flatnonzero(numbers < 2 * LARGEST * (n_wanted / len(rows)))  # nearly always enough
    if len(few) < n_wanted:
        few = np.arange(len(rows))
    return rows[few[np.argpartition(numbers[few], n_wanted - 1)[:n_wanted]]]


def _bound(scores: FloatArray, top_k: int) -> float:
    """A score that at least `top_k` scores reach: the best score of the worst of the `top_k` best blocks."""
    block = min(_BLOCK, len(scores) // (2 * top_k))
    best = scores
    if block > 1:
        n_blocks = len(scores) // block
        best = scores[: n_blocks * block].reshape(n_blocks, block).max(axis=1)
    return float(np.partition(best, len(best) - top_k)[len(best) - top_k])
