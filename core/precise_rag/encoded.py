"""The way from texts to vectors and token counts: an encoder is asked, and what it returns is checked.

Encoders may be anybody's. Every caller gets numpy arrays of the right shape, or one error.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.checks import shown
from precise_rag.errors import ModelError
from precise_rag.protocols import Encoder
from precise_rag.structure.base64_runs import is_base64
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import unit_rows

_END = 4_000
"""Characters at each end of a long query that are read: what is asked is there."""


def encode_documents(encoder: Encoder, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
    """Return the (n, d) vectors of n texts; d is the encoder's dimension. See `encoded_rows`.

    Base64 is not read: its vector is that of an empty text.
    """
    if not len(texts):
        return np.zeros((0, encoder.dimension), dtype=np.float32)
    read = ["" if is_base64(text) else text for text in texts]
    rows = encoder.encode(read, show_progress=True) if show_progress else encoder.encode(read)
    return _rows_of(encoder, rows, len(read))


def encode_queries(encoder: Encoder, queries: Sequence[str]) -> FloatArray:
    """Return (n, d) vectors of n queries, as `encode_documents` does. Of a long one, its ends are read."""
    if not len(queries):
        return np.zeros((0, encoder.dimension), dtype=np.float32)
    read = [one if len(one) <= 2 * _END else f"{one[:_END]} {one[-_END:]}" for one in queries]
    return _rows_of(encoder, encoder.encode_queries(read), len(queries))


def count_tokens(encoder: Encoder, texts: Sequence[str]) -> IntArray:
    """Return the (n,) int64 token counts of n texts. Raises ModelError unless they are n whole numbers."""
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    given = encoder.count_tokens(texts)
    counts = _array(given, _name(encoder), "token counts")
    if counts.shape != (len(texts),) or counts.dtype.kind not in "iu" or counts.min() < 0:
        raise ModelError(
            f"{_name(encoder)} returned {_described(given, counts)} as token counts; "
            f"expected {len(texts)} whole numbers"
        )
    return counts.astype(np.int64)


def encoded_rows(vectors: Any, n_texts: int, *, source: str, dimension: int | None = None) -> FloatArray:
    """Check the vectors that an encoder returned for n texts, and scale them to unit length.

    vectors: n sequences of d numbers, in any form that numpy reads.
    source: name of the encoder, for messages.
    dimension: d; default: any.
    Returns (n, d) float32 rows of unit length; a zero row stays zero.
    Raises ModelError if they are not n vectors of one length, or contain NaN or infinity.
    """
    rows = _array(vectors, source, "vectors")
    fits = rows.ndim == 2 and len(rows) == n_texts and 0 < rows.shape[1] == (dimension or rows.shape[1])
    if not fits or rows.dtype.kind not in "fiu":
        raise ModelError(
            f"{source} returned {_described(vectors, rows)} for {n_texts} texts; expected real numbers "
            f"of shape ({n_texts}, {dimension or 'd'})"
        )
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinity
        rows = rows.astype(np.float32)
    if not np.isfinite(rows).all():
        raise ModelError(f"{source} returned vectors with NaN or infinity; all values must be finite")
    return unit_rows(rows)


def _rows_of(encoder: Encoder, rows: Any, n_texts: int) -> FloatArray:
    dimension = getattr(encoder, "dimension", None)  # after the call, by which some encoders learn it
    return encoded_rows(rows, n_texts, source=_name(encoder), dimension=dimension)


def _array(values: Any, source: str, what: str) -> npt.NDArray[Any]:
    if values is None:
        raise ModelError(f"{source} returned None instead of {what}")
    try:
        rows = np.asarray(values)
        return np.asarray(values, dtype=np.float32) if rows.dtype == object else rows
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # torch raises RuntimeError
        raise ModelError(
            f"{source} returned a {type(values).__name__} that is no array of {what}: {error}"
        ) from error


def _described(given: Any, rows: npt.NDArray[Any]) -> str:
    return f"an array of shape {rows.shape} and type {rows.dtype}" if rows.shape else shown(given)


def _name(encoder: Encoder) -> str:
    return str(getattr(encoder, "name", type(encoder).__name__))
