"""Vectors as an index keeps them: float32, or smaller at a small loss."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Columns
from precise_rag.types import FloatArray, IntArray

Precision = Literal["float32", "float16", "int8"]
_BACKEND = re.compile(r"numpy|torch(:(cpu|cuda(:[0-9]+)?))?")
_SLICE = 1_024
"""Rows widened at a time: they should fit the cache."""


@dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """precision: how vectors are kept. "float16" halves and "int8" quarters disk and memory. A search
    by numpy widens them slice by slice: int8 takes about 1.3 times as long, float16 5 times.
    backend: what multiplies them with a query: "numpy", "torch" (CUDA where there is a device, else the
    CPU) or a device of torch's, as "torch:cuda:1". See `Products`."""

    precision: Precision = "float32"
    backend: str = "numpy"

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "float16", "int8"):
            raise InputError(f"precision is {self.precision!r}; expected 'float32', 'float16' or 'int8'")
        if not _BACKEND.fullmatch(self.backend):
            raise InputError(f"backend is {self.backend!r}; expected 'numpy', 'torch' or as 'torch:cuda:0'")


def vector_columns(vectors: FloatArray, precision: Precision) -> Columns:
    """Column "vectors" (n, d); for int8 also "vector_scales" (n,), by which a row is multiplied."""
    if precision != "int8":
        return {"vectors": vectors.astype(precision, copy=False)}
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0), 1e-12) / 127
    return {
        "vectors": np.rint(vectors / scales[:, None]).astype(np.int8),
        "vector_scales": scales.astype(np.float32),
    }


def read_vectors(columns: Columns, rows: slice | IntArray) -> FloatArray:
    """(k, d) float32 vectors of some rows."""
    vectors: FloatArray = np.asarray(columns["vectors"][rows], dtype=np.float32)
    if "vector_scales" in columns:
        vectors = vectors * columns["vector_scales"][rows, None]
    return vectors


def dot(columns: Columns, query: FloatArray) -> FloatArray:
    """(n,) products of all vectors with (d,) `query`."""
    vectors = columns["vectors"]
    if vectors.dtype == np.float32:
        products: FloatArray = vectors @ query
        return products
    scores = np.empty(len(vectors), dtype=np.float32)
    for rows in _slices(len(vectors)):
        scores[rows] = vectors[rows].astype(np.float32) @ query
    return scores * columns["vector_scales"] if "vector_scales" in columns else scores


def _slices(n_rows: int) -> Iterator[slice]:
    return (slice(first, first + _SLICE) for first in range(0, n_rows, _SLICE))
