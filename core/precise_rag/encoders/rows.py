"""Checks on the vectors that an embedding model returns."""

import numpy as np
import numpy.typing as npt

from precise_rag.errors import ModelError
from precise_rag.types import FloatArray
from precise_rag.vectors import unit_rows


def encoded_rows(vectors: npt.ArrayLike, *, source: str) -> FloatArray:
    """Check a model's vectors and scale them to unit length.

    vectors: n vectors of equal length d.
    source: name of the model, for error messages.
    Returns (n, d) float32 rows of unit length; a zero row stays zero.
    Raises ModelError if the vectors differ in length or contain NaN or infinity.
    """
    try:
        rows = np.asarray(vectors, dtype=np.float32)
    except ValueError as error:
        raise ModelError(f"{source} returned vectors of different lengths: {error}") from error
    if rows.ndim != 2:
        raise ModelError(f"{source} returned an array of shape {rows.shape}; expected (n, d)")
    if not np.isfinite(rows).all():
        raise ModelError(f"{source} returned vectors with NaN or infinity; all values must be finite")
    return unit_rows(rows)
