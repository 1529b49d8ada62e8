"""What every encoder owes its callers: float32 rows of unit length, and a token count."""

import numpy as np
import numpy.typing as npt

from precise_rag.errors import ModelError
from precise_rag.types import FloatArray


def unit_rows(vectors: npt.ArrayLike, *, source: str) -> FloatArray:
    """(n, d) float32 rows of unit length; a zero row stays zero.

    Raises ModelError, naming `source`, if the rows are ragged or hold NaN or infinity.
    """
    try:
        rows = np.asarray(vectors, dtype=np.float32)
    except ValueError as error:
        raise ModelError(f"{source} gave vectors of different lengths: {error}") from error
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ModelError(f"{source} gave an array of shape {rows.shape} that must be finite and (n, d)")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    norms[norms == 0] = 1
    unit: FloatArray = rows / norms
    return unit
