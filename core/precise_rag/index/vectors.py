"""Vectors as an index stores them, float32 or int8, and their dot products with a query."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import simsimd

from precise_rag.checks import check_choice
from precise_rag.index.ranking import least_of
from precise_rag.index.table import Columns, Shard
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import dots

LEAST_ROWS = 20_000
"""Shards with fewer rows have no rough vectors."""
_DEVIATIONS = 5.0
"""Standard deviations of its error that a rough product may be off."""
_FEW = 1_000
"""Fewer rows than this are compared exactly at once."""
_SLICE = 8_192


@dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """Setting of indexes that store vectors.

    precision: "float32", or "int8": a quarter of the size, and faster.
    """

    precisions: ClassVar[tuple[str, ...]] = ("float32", "int8")
    precision: Literal["float32", "int8"] = "float32"

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, self.precisions)


def vector_columns(vectors: npt.NDArray[np.floating], precision: str) -> Columns:
    """Column "vectors" (n, d), and for int8 "vector_scales" (n,): the factor of each row."""
    if precision != "int8":
        return {"vectors": vectors.astype(precision, copy=False)}
    codes, scales = np.empty(vectors.shape, dtype=np.int8), np.empty(len(vectors), dtype=np.float32)
    for first in range(0, len(vectors), _SLICE):
        rows = slice(first, first + _SLICE)
        codes[rows], scales[rows] = rounded(np.asarray(vectors[rows], dtype=np.float32))
    return {"vectors": codes, "vector_scales": scales}


def rounded(vectors: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Return (n, d) int8 codes and (n,) scales of vectors, so that `codes * scales` is nearly `vectors`."""
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0), 1e-12) / 127
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def read_vectors(columns: Columns, rows: slice | IntArray) -> FloatArray:
    """(k, d) float32 vectors of these rows."""
    stored = columns["vectors"]
    taken = stored[rows] if isinstance(rows, slice) else np.take(stored, rows, axis=0)  # faster than [rows]
    vectors: FloatArray = np.asarray(taken, dtype=np.float32)
    if "vector_scales" in columns:
        vectors = vectors * columns["vector_scales"][rows, None]
    return vectors


def dot(columns: Columns, query: FloatArray, *, parts: int = 2) -> FloatArray:
    """(n,) float32 dot product of each vector with `query` (d,).

    parts: how many int8 vectors stand for the query if the vectors are int8; each makes it 127 times as
        precise.
    """
    vectors = columns["vectors"]
    if vectors.dtype != np.int8:
        return dots(vectors, query)
    total = np.zeros(len(vectors), dtype=np.float32)
    rest = np.asarray(query, dtype=np.float32)[None]
    for _ in range(parts):
        part, scale = rounded(rest)
        total += np.asarray(simsimd.cdist(part, vectors, "dot", out_dtype="float32"))[0] * scale
        rest = rest - part * scale[:, None]
    return total * columns["vector_scales"]


@dataclass(frozen=True, slots=True)
class Products:
    """Dot products with the vectors of a shard, which stay where they are, memory-mapped or not.

    rough_columns: columns of the same vectors in int8, if there are many rows.
    """

    columns: Columns
    rough_columns: Columns | None = None

    @classmethod
    def of(cls, shard: Shard) -> Self:
        """Prepare the vectors of a shard; rough ones of many rows are kept with it."""
        columns = shard.columns
        vectors = columns["vectors"]
        if len(vectors) < LEAST_ROWS:
            return cls(columns)
        if vectors.dtype == np.int8:
            return cls(columns, columns)
        return cls(columns, shard.kept("int8", lambda: vector_columns(vectors, "int8")))

    def rough(self, query: FloatArray) -> FloatArray:
        """(n,) float32 products that may be off by `margin`, in less time if there are many rows."""
        if self.rough_columns is None:
            return dot(self.columns, query)
        return dot(self.rough_columns, query, parts=1)

    @property
    def margin(self) -> float:
        """How far a product of `rough` may be from the exact one, for vectors and queries of unit length.

        The errors of the components are independent of each other and of the query, so that their sum has
        the standard deviation of one component.
        """
        scales = () if self.rough_columns is None else self.rough_columns["vector_scales"]
        return _DEVIATIONS * 2 * float(np.max(scales, initial=0)) / math.sqrt(12)

    def of_rows(self, rows: IntArray, query: FloatArray) -> FloatArray:
        """(k,) the products of some rows."""
        return dots(read_vectors(self.columns, rows), query)

    def best(
        self, query: FloatArray, top_k: int, rows: IntArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Rows of the `top_k` largest products and of all that equal the last, ascending; and the products.

        rows: ascending, those to compare; default: all.
        """
        compared = np.arange(len(self.columns["vectors"])) if rows is None else rows
        if self.rough_columns is not None and len(compared) >= max(_FEW, 4 * top_k):
            nearly = self.rough(query)[compared]
            least = least_of(nearly, top_k) - 2 * self.margin
            rows = compared = compared[nearly >= least]
        scores = dot(self.columns, query) if rows is None else self.of_rows(rows, query)
        best = np.flatnonzero(scores >= least_of(scores, top_k))
        return compared[best], scores[best]
