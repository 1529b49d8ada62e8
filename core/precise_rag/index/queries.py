"""What the searches of all kinds of index share."""

import asyncio
from abc import ABC
from collections.abc import Callable
from typing import Any

import numpy as np

from precise_rag.checks import check_number, check_text
from precise_rag.encoders import FrameworkEncoder
from precise_rag.errors import InputError
from precise_rag.types import Candidate, FloatArray, check_query
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


class Searched(ABC):
    """An index that can be searched, also without blocking an event loop."""

    search: Callable[..., list[Candidate]]

    async def asearch(self, query: str, top_k: int = 10, **options: Any) -> list[Candidate]:
        """Run `search` without blocking the event loop, with the same options.

        The query is encoded by the asynchronous method of a framework's embedding object, if it is one.
        """
        encoder = getattr(self, "encoder", None)
        if isinstance(encoder, FrameworkEncoder) and options.get("vector") is None:
            (options["vector"],) = await encoder.aencode_queries([check_query(query)])
        return await asyncio.to_thread(self.search, query, top_k, **options)
