"""Vectors of unit length, and their products."""

import numpy as np

from precise_rag._processes import native_work, short_products
from precise_rag.types import FloatArray

_SHORT = 2**23
"""Products with fewer numbers than this take the calling thread less time than others need to start."""


def unit_rows(rows: FloatArray, *, shortest: float = 0.0) -> FloatArray:
    """Scale each row to unit length.

    rows: (n, d) vectors.
    shortest: rows of this length or less become zero; default 0, so that only zero rows stay zero.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths <= shortest] = np.inf
    unit: FloatArray = rows / lengths[:, None]
    return unit


def dots(rows: FloatArray, vector: FloatArray) -> FloatArray:
    """(n,) dot product of each row with a vector. rows: (n, d). vector: (d,)."""
    with short_products() if rows.size < _SHORT else native_work():
        products: FloatArray = rows @ vector
    return products
