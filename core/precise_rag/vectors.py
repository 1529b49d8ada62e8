"""Vectors of unit length and their products, and slices of different lengths in one array."""

import numpy as np
import numpy.typing as npt
import simsimd

from precise_rag.types import FloatArray, IntArray

_SHARED = 2**18
"""Multiplications from which on OpenBLAS shares a matrix product among its threads. Each of them is then busy
for 25 ms waiting for the next one, so products of a tenth of a millisecond are cut into smaller ones."""
_LEAST, _MOST = 1e-15, 1e15
"""Lengths between which squares are exact enough in float32."""


def unit_rows(rows: FloatArray, *, shortest: float = 0.0) -> FloatArray:
    """Scale each row to unit length.

    rows: (n, d) vectors.
    shortest: rows of this length or less become zero; default 0, so that only zero rows stay zero.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if len(lengths) and not _LEAST < lengths.min() <= lengths.max() < _MOST:
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)).astype(rows.dtype)
    lengths[lengths <= shortest] = np.inf
    unit: FloatArray = rows / lengths[:, None]
    return unit


def dots(rows: FloatArray, vector: FloatArray) -> FloatArray:
    """(n,) dot product of each row with a vector. rows: (n, d). vector: (d,)."""
    if not len(rows):
        return np.zeros(0, dtype=np.float32)
    return np.asarray(simsimd.cdist(vector[None], rows, "dot", out_dtype="float32")).ravel()


def linear(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """(n, k) `rows @ weight.T`, computed by the calling thread. rows: (n, d). weight: (k, d)."""
    step = max(1, _SHARED // weight.size)
    total = np.empty((len(rows), len(weight)), dtype=np.float32)
    for first in range(0, len(rows), step):
        np.matmul(rows[first : first + step], weight.T, out=total[first : first + step])
    return total


def probabilities(odds: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """(n,) probabilities of log-odds."""
    inside = np.clip(np.asarray(odds, dtype=np.float64), -700.0, 700.0)  # exp of more would overflow
    return np.asarray(1.0 / (1.0 + np.exp(-inside)))


def offsets_of(sizes: npt.ArrayLike) -> IntArray:
    """(n + 1,) where each of n slices of some sizes begins, one after another, and where the last ends."""
    return np.cumsum(np.append(0, np.asarray(sizes, dtype=np.int64)))


def slice_places(starts: IntArray, lengths: IntArray) -> IntArray:
    """(t,) places in the slices that begin at `starts` (n,), one after another; t is the sum of `lengths`."""
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
