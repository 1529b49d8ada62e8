"""The arguments of a search, checked."""

from typing import Any

import numpy as np

from precise_rag.checks import check_number, check_text
from precise_rag.errors import InputError
from precise_rag.types import FloatArray
from precise_rag.vectors import unit_rows


def check_search(query: str, top_k: int) -> None:
    """Raise InputError unless the query is a string and `top_k` a whole number of at least 1."""
    check_text("the query", query)
    check_number("top_k", top_k, least=1, whole=True)


def query_direction(vector: Any, dimension: int) -> FloatArray:
    """(d,) float32 query vector of unit length. Raises InputError if its length is not `dimension`."""
    try:
        row = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the query's vector must be numbers: {error}") from error
    if row.shape != (dimension,) or not np.isfinite(row).all():
        raise InputError(
            f"the query's vector must be finite numbers of shape {(dimension,)} as those indexed, "
            f"got {row.shape}"
        )
    direction: FloatArray = unit_rows(row[None])[0]
    return direction
