"""faiss indexes over the vectors of a segment."""

from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag._extras import require
from precise_rag.errors import IndexFormatError
from precise_rag.index.arrays.collection import BoolArray, Columns
from precise_rag.index.arrays.faiss_rows import FaissBackend, FaissRows
from precise_rag.index.arrays.vectors import read_vectors
from precise_rag.index.rows.segments import Part, Segment
from precise_rag.types import FloatArray, IntArray

EXACT_ROWS = 10_000
"""A segment with fewer rows has no faiss index: all of its rows are compared."""
_EXACT_SHARE = 0.1
"""If less than this share of rows may be found, all of these are compared, without the faiss index."""
KEPT = "faiss"
"""What the arrays of a faiss index are kept under with a segment."""
_INDEX, _MADE = KEPT, f"{KEPT}.made"
"""The faiss index, and what it was made from."""


def load_rows(segment: Segment, backend: FaissBackend) -> FaissRows:
    """Return the faiss index of a segment: the saved one if it has the same factory, otherwise a new one.

    Raises InputError for what faiss does not accept, and IndexFormatError if the saved one is damaged.
    """
    columns = segment.collection.columns
    if _INDEX not in segment.extras or _made(segment.extras) != _as_made(backend):
        return FaissRows.of(read_vectors(columns, slice(None)), backend)
    try:
        index = require("faiss", extra="faiss").deserialize_index(np.array(segment.extras[_INDEX]))
        if (index.ntotal, index.d) != columns["vectors"].shape:
            raise ValueError("it does not hold the vectors of this index")
    except (RuntimeError, TypeError, ValueError) as error:
        where = segment.stored.path if segment.stored else "the index"
        raise IndexFormatError(
            f"{where} is damaged (faiss: {error}); load it without trusted=True, or build it again"
        ) from error
    return FaissRows.around(index, backend)


def saved_rows(segment: Segment, backend: FaissBackend) -> Columns:
    """The arrays to save with a segment, by name; none for a copy of the vectors ("Flat")."""
    if segment.near is None or backend.factory == "Flat":
        return {}
    faiss = require("faiss", extra="faiss")
    made = np.frombuffer(_as_made(backend), dtype=np.uint8)
    return {_INDEX: faiss.serialize_index(segment.near.index), _MADE: made}


def without_rows(extras: Columns) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a saved segment without its faiss index."""
    return {name: array for name, array in extras.items() if name not in (_INDEX, _MADE)}


def nearest_rows(
    part: Part, direction: FloatArray, top_k: int, matching: BoolArray | None
) -> tuple[IntArray, FloatArray] | None:
    """At most `top_k` rows of a part, nearest first, and their scores by faiss.

    matching: (n,) whether each row may be found; None for all.
    None if the part has no faiss index, or if comparing all rows that match is better.
    """
    if part.segment.near is None:
        return None
    n_rows = len(part.segment.collection)
    n_found = n_rows if matching is None else int(np.count_nonzero(matching))
    if n_found < _EXACT_SHARE * n_rows:
        return None
    rows, scores = part.segment.near.best(direction, top_k, matching)
    return (rows, scores) if matching is None or len(rows) == min(top_k, n_found) else None


def _as_made(backend: FaissBackend) -> bytes:
    return backend.factory.encode()


def _made(extras: Columns) -> bytes:
    """The factory that a saved faiss index was made with."""
    return extras[_MADE].tobytes() if _MADE in extras else b""
