"""Dot products of a query with all vectors of an index, by numpy or by torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.index.arrays import rough
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.rough import RoughVectors
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.vectors import dot, read_vectors
from precise_rag.types import FloatArray, IntArray

Kept = Callable[[str, Callable[[], Columns]], Columns]
"""Returns the arrays of a name, which the function makes if there are none."""
_GATHER_SHARE = 0.2
"""If more rows are compared than this share, all products are computed: that is faster than picking rows."""
_FEW = 1_000
"""Fewer rows than this are compared exactly at once."""


class Products(Protocol):
    """Dot products with the vectors of a segment."""

    def all(self, query: FloatArray) -> FloatArray:
        """(n,) float32 product of each vector with `query` (d,)."""
        ...

    def rough(self, query: FloatArray) -> FloatArray | None:
        """(n,) nearly the products, in less time; None if `all` is as fast."""
        ...

    def of_rows(self, rows: IntArray, query: FloatArray) -> FloatArray:
        """(k,) the products of some rows."""
        ...

    def best(
        self, query: FloatArray, top_k: int, rows: IntArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Rows of the `top_k` largest products, largest first, and the products.

        rows: ascending, those to compare; default: all.
        """
        ...


def load_products(columns: Columns, backend: str, kept: Kept | None = None) -> Products:
    """Prepare the vectors of `columns` for a backend.

    backend: see `VectorSettings`; faiss finds rows, numpy multiplies.
    kept: keeps the rough vectors of many rows, which are then used; see `Segment.kept`. Default: none.
    Raises MissingExtra if torch is not installed, and InputError if the device does not exist.
    """
    if not backend.startswith("torch"):
        return NumpyProducts(columns, _rough_vectors(columns, kept))
    return TorchProducts.of(columns, backend.removeprefix("torch").removeprefix(":"))


def _rough_vectors(columns: Columns, kept: Kept | None) -> RoughVectors | None:
    vectors = columns["vectors"]
    if kept is None or len(vectors) < rough.LEAST_ROWS:
        return None
    if vectors.dtype == np.int8:
        return RoughVectors(vectors, columns["vector_scales"])
    arrays = kept(rough.ROUGH, lambda: RoughVectors.of(vectors).arrays)
    return RoughVectors(arrays["codes"], arrays["scales"])


@dataclass(frozen=True, slots=True)
class NumpyProducts(Products):
    """Products by numpy; the vectors stay where they are, memory-mapped or not."""

    columns: Columns
    rough_vectors: RoughVectors | None = None

    @override
    def all(self, query: FloatArray) -> FloatArray:
        return dot(self.columns, query)

    @override
    def rough(self, query: FloatArray) -> FloatArray | None:
        return None if self.rough_vectors is None else self.rough_vectors.products(query)

    @override
    def of_rows(self, rows: IntArray, query: FloatArray) -> FloatArray:
        return dot({"vectors": read_vectors(self.columns, rows)}, query)

    @override
    def best(
        self, query: FloatArray, top_k: int, rows: IntArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        n_rows = len(self.columns["vectors"])
        n_compared = n_rows if rows is None else len(rows)
        if self.rough_vectors is None or n_compared < max(_FEW, 4 * top_k):
            if rows is not None and len(rows) < _GATHER_SHARE * n_rows:
                return _best(rows, self.of_rows(rows, query), top_k)
            scores = self.all(query)
            return _best(rows, scores if rows is None else scores[rows], top_k)
        nearly = self.rough_vectors.products(query, rows)
        if top_k < len(nearly):
            least = nearly[top_rows(nearly, top_k)[-1]] - 2 * self.rough_vectors.margin
            kept = np.flatnonzero(nearly >= least)
            rows = kept if rows is None else rows[kept]
        rows = np.arange(n_rows) if rows is None else rows
        return _best(rows, self.of_rows(rows, query), top_k)


def _best(rows: IntArray | None, scores: FloatArray, top_k: int) -> tuple[IntArray, FloatArray]:
    """The best of some rows, and their scores; rows: None for all."""
    best = top_rows(scores, top_k)
    return best if rows is None else rows[best], scores[best]


@dataclass(frozen=True, slots=True)
class TorchProducts(Products):
    """Products by torch, of a copy of the vectors on a device.

    vectors: (n, d) tensor; float32, or float16 if the index stores float16 or int8.
    scales: (n,) tensor that multiplies the products of int8 vectors, else None.

    Products of float16 vectors have float16 precision.
    """

    vectors: Any
    scales: Any

    @classmethod
    def of(cls, columns: Columns, device: str = "") -> "TorchProducts":
        """Copy the vectors to a device; default: CUDA if there is one, otherwise the CPU."""
        torch = require("torch", extra="torch")
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        devices = torch.cuda.device_count() if device.startswith("cuda") else 1
        if int(device.partition(":")[2] or 0) >= devices:
            raise InputError(
                f"backend is 'torch:{device}' but torch {torch.__version__} sees {devices} CUDA devices; "
                "use backend='torch' or 'numpy'"
            )
        kept = np.float32 if columns["vectors"].dtype == np.float32 else np.float16
        vectors = torch.from_numpy(np.array(columns["vectors"], dtype=kept)).to(device)
        scales = columns.get("vector_scales")
        return cls(vectors, None if scales is None else torch.from_numpy(np.array(scales)).to(device))

    @override
    def all(self, query: FloatArray) -> FloatArray:
        scores: FloatArray = self._scores(query).cpu().numpy()
        return scores

    @override
    def rough(self, query: FloatArray) -> FloatArray | None:
        return None

    @override
    def of_rows(self, rows: IntArray, query: FloatArray) -> FloatArray:
        return self.all(query)[rows]

    @override
    def best(
        self, query: FloatArray, top_k: int, rows: IntArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Only the best rows are copied from the device."""
        if rows is not None:
            return _best(rows, self.of_rows(rows, query), top_k)
        scores = self._scores(query)
        threshold = scores.topk(min(top_k, len(scores))).values[-1]
        reached = (scores >= threshold).nonzero()[:, 0]
        rows_reached: npt.NDArray[np.int64] = reached.cpu().numpy()
        values: FloatArray = scores[reached].cpu().numpy()
        order = np.argsort(-values, kind="stable")[:top_k]
        return rows_reached[order], values[order]

    def _scores(self, query: FloatArray) -> Any:
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            direction = torch.from_numpy(np.array(query)).to(self.vectors)
            scores = (self.vectors @ direction).float()
            return scores if self.scales is None else scores * self.scales
