"""Dot products of a query with all vectors of an index, by numpy or by torch."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from precise_rag._extras import require
from precise_rag._processes import native_work
from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.vectors import dot
from precise_rag.types import FloatArray, IntArray


class Products(Protocol):
    """Dot products with the vectors of a collection."""

    def all(self, query: FloatArray) -> FloatArray:
        """(n,) float32 product of each vector with `query` (d,)."""
        ...

    def best(self, query: FloatArray, top_k: int) -> tuple[IntArray, FloatArray]:
        """Rows of the `top_k` largest products, largest first, and the products."""
        ...


def load_products(columns: Columns, backend: str) -> Products:
    """Prepare the vectors of `columns` for a backend.

    backend: "numpy", "torch" or a torch device; see `VectorSettings`.
    Raises MissingExtra if torch is not installed, and InputError if the device does not exist.
    """
    if backend == "numpy":
        return NumpyProducts(columns)
    return TorchProducts.of(columns, backend.removeprefix("torch").removeprefix(":"))


@dataclass(frozen=True, slots=True)
class NumpyProducts:
    """Products by numpy; the vectors stay where they are, memory-mapped or not."""

    columns: Columns

    def all(self, query: FloatArray) -> FloatArray:
        """See `Products`."""
        return dot(self.columns, query)

    def best(self, query: FloatArray, top_k: int) -> tuple[IntArray, FloatArray]:
        """See `Products`."""
        scores = self.all(query)
        rows = top_rows(scores, top_k)
        return rows, scores[rows]


@dataclass(frozen=True, slots=True)
class TorchProducts:
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

    def all(self, query: FloatArray) -> FloatArray:
        """See `Products`."""
        with native_work(self.vectors.device.type):
            scores: FloatArray = self._scores(query).cpu().numpy()
        return scores

    def best(self, query: FloatArray, top_k: int) -> tuple[IntArray, FloatArray]:
        """See `Products`. Only the best rows are copied from the device."""
        with native_work(self.vectors.device.type):
            scores = self._scores(query)
            threshold = scores.topk(min(top_k, len(scores))).values[-1]
            rows = (scores >= threshold).nonzero()[:, 0]
            found: npt.NDArray[np.int64] = rows.cpu().numpy()
            values: FloatArray = scores[rows].cpu().numpy()
        order = np.argsort(-values, kind="stable")[:top_k]
        return found[order], values[order]

    def _scores(self, query: FloatArray) -> Any:
        torch = require("torch", extra="torch")
        with torch.inference_mode():
            direction = torch.from_numpy(np.array(query)).to(self.vectors)
            scores = (self.vectors @ direction).float()
            return scores if self.scales is None else scores * self.scales
