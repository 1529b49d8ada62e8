"""Dot products of a query with all vectors of an index."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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


def load_products(columns: Columns, kept: Kept | None = None) -> "Products":
    """Prepare the vectors of `columns`.

    kept: keeps the rough vectors of many rows, which are then used; see `Segment.kept`. Default: none.
    """
    return Products(columns, _rough_vectors(columns, kept))


def _rough_vectors(columns: Columns, kept: Kept | None) -> RoughVectors | None:
    vectors = columns["vectors"]
    if kept is None or len(vectors) < rough.LEAST_ROWS:
        return None
    if vectors.dtype == np.int8:
        return RoughVectors(vectors, columns["vector_scales"])
    arrays = kept(rough.ROUGH, lambda: RoughVectors.of(vectors).arrays)
    return RoughVectors(arrays["codes"], arrays["scales"])


@dataclass(frozen=True, slots=True)
class Products:
    """Dot products with the vectors of a segment, which stay where they are, memory-mapped or not."""

    columns: Columns
    rough_vectors: RoughVectors | None = None

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
