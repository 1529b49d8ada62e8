"""Vectors of unit length, and their products."""

import numpy as np

from precise_rag._processes import native_work, short_products
from precise_rag.types import FloatArray

_SHORT = 2**23
"""Products with fewer numbers than this take the calling thread less time than others need to start."""

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
    with short_products() if rows.size < _SHORT else native_work():
        products: FloatArray = rows @ vector
    return products
