"""Vectors as an index stores them, float32 or int8, and their dot products with a query."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import simsimd

from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.index.ranking import top_rows
from precise_rag.index.table import Columns
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import dots

LEAST_ROWS = 20_000
"""Blocks with fewer rows have no rough vectors."""
_DEVIATIONS = 5.0
"""Standard deviations of its error that a rough product may be off."""
_FEW = 1_000
"""Fewer rows than this are compared exactly at once."""
_SLICE = 8_192


@dataclass(frozen=True, slots=True)
class RoughVectors:
    """Vectors of unit length as int8 numbers.

    codes: (n, d) int8. scales: (n,) the factor of each row.
    """

    codes: npt.NDArray[np.int8]
    scales: FloatArray

    @property
    def margin(self) -> float:
        """How far a product of `products` may be from that of the exact vectors.

        The errors of the components are independent of each other and of the query, so that their sum has
        the standard deviation of one component.
        """
        return _DEVIATIONS * 2 * float(self.scales.max(initial=0)) / math.sqrt(12)

    def products(self, query: FloatArray) -> FloatArray:
        """(n,) rough product of each vector with `query` (d,)."""
        return code_products(self.codes, query, parts=1) * self.scales


def rough_columns(vectors: npt.NDArray[np.floating]) -> Columns:
    """Round (n, d) vectors: "codes" and "scales" of `RoughVectors`."""
    codes, scales = np.empty(vectors.shape, dtype=np.int8), np.empty(len(vectors), dtype=np.float32)
    for first in range(0, len(vectors), _SLICE):
        rows = slice(first, first + _SLICE)
        codes[rows], scales[rows] = rounded(np.asarray(vectors[rows], dtype=np.float32))
    return {"codes": codes, "scales": scales}


def rounded(vectors: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Return (n, d) int8 codes and (n,) scales of vectors, so that `codes * scales` is nearly `vectors`."""
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0), 1e-12) / 127
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def code_products(codes: npt.NDArray[np.int8], query: FloatArray, *, parts: int) -> FloatArray:
    """(n,) float32 product of each row of int8 codes with `query` (d,).

    parts: how many int8 vectors stand for the query; each makes it 127 times as precise.
    """
    total = np.zeros(len(codes), dtype=np.float32)
    rest = np.asarray(query, dtype=np.float32)[None]
    for _ in range(parts):
        part, scale = rounded(rest)
        total += np.asarray(simsimd.cdist(part, codes, "dot", out_dtype="float32"))[0] * scale
        rest = rest - part * scale[:, None]
    return total


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


@dataclass(frozen=True, slots=True)
class Products:
    """Dot products with the vectors of a block, which stay where they are, memory-mapped or not."""

    columns: Columns
    rough_vectors: RoughVectors | None = None

    @classmethod
    def of(
        cls, columns: Columns, kept: Callable[[str, Callable[[], Columns]], Columns] | None = None
    ) -> Products:
        """Prepare the vectors of `columns`.

        kept: keeps the rough vectors of many rows, which are then used; see `Block.kept`. Default: none.
        """
        vectors = columns["vectors"]
        if kept is None or len(vectors) < LEAST_ROWS:
            return cls(columns)
        if vectors.dtype == np.int8:
            return cls(columns, RoughVectors(vectors, columns["vector_scales"]))
        arrays = kept("rough", lambda: rough_columns(vectors))
        return cls(columns, RoughVectors(arrays["codes"], arrays["scales"]))

    def all(self, query: FloatArray) -> FloatArray:
        """(n,) float32 product of each vector with `query` (d,)."""
        return dot(self.columns, query)

    def rough(self, query: FloatArray) -> FloatArray | None:
        """(n,) nearly the products, in less time; None if `all` is as fast."""
        return None if self.rough_vectors is None else self.rough_vectors.products(query)

    def of_rows(self, rows: IntArray, query: FloatArray) -> FloatArray:
        """(k,) the products of some rows."""
        return dot({"vectors": read_vectors(self.columns, rows)}, query)

    def best(
        self, query: FloatArray, top_k: int, rows: IntArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Rows of the `top_k` largest products, largest first, and the products.

        rows: ascending, those to compare; default: all.
        """
        compared = np.arange(len(self.columns["vectors"])) if rows is None else rows
        if self.rough_vectors is not None and len(compared) >= max(_FEW, 4 * top_k):
            nearly = self.rough_vectors.products(query)[compared]
            least = nearly[top_rows(nearly, top_k)[-1]] - 2 * self.rough_vectors.margin
            rows = compared = compared[nearly >= least]
        scores = self.all(query) if rows is None else self.of_rows(rows, query)
        best = top_rows(scores, top_k)
        return compared[best], scores[best]
