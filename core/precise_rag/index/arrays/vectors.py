"""Vectors as an index stores them: float32, float16 or int8."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.forms import Form, Forms, ensure
from precise_rag.index.arrays.rough import code_products, rounded
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import dots

Precision = Literal["float32", "float16", "int8"]
_BACKEND = re.compile(r"numpy|torch(:(cpu|cuda(:[0-9]+)?))?|faiss(-gpu)?(:[^@]+(@.+)?)?")
_SLICE = 1_024
"""Rows converted to float32 at a time; they should fit the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """Settings of indexes that store vectors.

    precision: "float32", "float16" (half the size) or "int8" (a quarter, and faster).
    backend: library that computes dot products: "numpy", "torch" (CUDA if there is a device, otherwise
        the CPU), a torch device such as "torch:cuda:1", or "faiss" with a factory string and search
        parameters, such as "faiss:IVF1024,SQ8@nprobe=16"; see `FaissBackend`.
    """

    precision: Precision = "float32"
    backend: str = "numpy"

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "float16", "int8"):
            raise InputError(f"precision must be 'float32', 'float16' or 'int8', got {shown(self.precision)}")
        if not isinstance(self.backend, str) or not _BACKEND.fullmatch(self.backend):
            raise InputError(
                "backend must be 'numpy', 'torch', a device like 'torch:cuda:0' or an index of faiss like "
                f"'faiss:HNSW32', got {shown(self.backend)}"
            )


def vector_columns(vectors: FloatArray, precision: Precision) -> Columns:
    """Column "vectors" (n, d), and for int8 "vector_scales" (n,): the factor of each row."""
    if precision != "int8":
        return {"vectors": vectors.astype(precision, copy=False)}
    codes, scales = rounded(vectors)
    return {"vectors": codes, "vector_scales": scales}


def vector_forms(precision: Precision) -> Forms:
    """The forms of the columns of `vector_columns`."""
    vectors = {"vectors": Form("fi", 2)}
    return {**vectors, "vector_scales": Form("f", 1)} if precision == "int8" else vectors


def check_vectors(columns: Columns, precision: Precision) -> None:
    """Raise ValueError unless the vectors are stored with this precision."""
    vectors = columns["vectors"]
    ensure(vectors.dtype == np.dtype(precision), f"vectors are {vectors.dtype}, not {precision}")
    ensure(vectors.shape[1] > 0, "vectors have no dimensions")


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
    if vectors.dtype == np.float32:
        return dots(vectors, query)
    if vectors.dtype == np.int8:
        return code_products(vectors, query, parts=2) * columns["vector_scales"]
    scores = np.empty(len(vectors), dtype=np.float32)
    for rows in _slices(len(vectors)):
        scores[rows] = dots(vectors[rows].astype(np.float32), query)
    return scores


def _slices(n_rows: int) -> Iterator[slice]:
    return (slice(first, first + _SLICE) for first in range(0, n_rows, _SLICE))
