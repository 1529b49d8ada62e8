"""Vectors as an index stores them: float32 or int8."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.rough import code_products, rounded
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import dots


@dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """Setting of indexes that store vectors.

    precision: "float32", or "int8": a quarter of the size, and faster.
    """

    precisions: ClassVar[tuple[str, ...]] = ("float32", "int8")
    precision: Literal["float32", "int8"] = "float32"

    def __post_init__(self) -> None:
        if self.precision not in self.precisions:
            given = shown(self.precision)
            raise InputError(f"precision must be {' or '.join(map(repr, self.precisions))}, got {given}")


def vector_columns(vectors: FloatArray, precision: str) -> Columns:
    """Column "vectors" (n, d), and for int8 "vector_scales" (n,): the factor of each row."""
    if precision != "int8":
        return {"vectors": vectors.astype(precision, copy=False)}
    codes, scales = rounded(vectors)
    return {"vectors": codes, "vector_scales": scales}


def read_vectors(columns: Columns, rows: slice | IntArray) -> FloatArray:
    """(k, d) float32 vectors of these rows."""
    stored = columns["vectors"]
    taken = stored[rows] if isinstance(rows, slice) else np.take(stored, rows, axis=0)  # faster than [rows]
    vectors: FloatArray = np.asarray(taken, dtype=np.float32)
    if "vector_scales" in columns:
        vectors = vectors * columns["vector_scales"][rows, None]
    return vectors


def dot(columns: Columns, query: FloatArray) -> FloatArray:
    """(n,) float32 dot product of each vector with `query` (d,)."""
    vectors = columns["vectors"]
    if vectors.dtype == np.int8:
        return code_products(vectors, query, parts=2) * columns["vector_scales"]
    return dots(vectors, query)
