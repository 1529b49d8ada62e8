"""Vectors of unit length."""

import numpy as np

from precise_rag.types import FloatArray


def unit_rows(rows: FloatArray, *, shortest: float = 0.0) -> FloatArray:
    """Scale each row to unit length.

    rows: (n, d) vectors.
    shortest: rows of this length or less become zero; default 0, so that only zero rows stay zero.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths <= shortest] = np.inf
    unit: FloatArray = rows / lengths[:, None]
    return unit
