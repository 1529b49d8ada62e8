"""A first pass over many vectors: products of int8 numbers, with a quarter of the memory traffic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import simsimd

from precise_rag.index.arrays.collection import Columns
from precise_rag.types import FloatArray, IntArray

ROUGH = "rough"
"""What rough vectors are kept under with a segment."""
LEAST_ROWS = 20_000
"""Segments with fewer rows have no rough vectors."""
_DEVIATIONS = 5.0
"""Standard deviations of its error that a rough product may be off."""
_GATHER_SHARE = 0.4
"""If more rows are wanted than this share, all products are computed: that is faster than picking rows."""
_SLICE = 8_192
_GATHERED = 2_048
"""Rows that are picked at a time."""


@dataclass(frozen=True, slots=True)
class RoughVectors:
    """Vectors of unit length as int8 numbers.

    codes: (n, d) int8. scales: (n,) the factor of each row.
    margin: how far a product of `products` may be from that of the exact vectors. The errors of the
        components are independent of each other and of the query, so that their sum has the standard
        deviation of one component.
    """

    codes: npt.NDArray[np.int8]
    scales: FloatArray
    margin: float = field(init=False)

    def __post_init__(self) -> None:
        widest = float(self.scales.max(initial=0))
        object.__setattr__(self, "margin", _DEVIATIONS * 2 * widest / math.sqrt(12))

    @classmethod
    def of(cls, vectors: npt.NDArray[np.floating]) -> RoughVectors:
        """Round (n, d) vectors."""
        codes, scales = np.empty(vectors.shape, dtype=np.int8), np.empty(len(vectors), dtype=np.float32)
        for first in range(0, len(vectors), _SLICE):
            rows = slice(first, first + _SLICE)
            codes[rows], scales[rows] = rounded(np.asarray(vectors[rows], dtype=np.float32))
        return cls(codes, scales)

    @property
    def arrays(self) -> Columns:
        """The arrays to save."""
        return {"codes": self.codes, "scales": self.scales}

    def products(self, query: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """(n,) rough product of each vector with `query` (d,); rows: those wanted, None for all."""
        if rows is None:
            return code_products(self.codes, query, parts=1) * self.scales
        if len(rows) < _GATHER_SHARE * len(self.codes):
            return code_products(self.codes, query, parts=1, rows=rows) * self.scales[rows]
        products: FloatArray = self.products(query)[rows]
        return products


def rounded(vectors: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Return (n, d) int8 codes and (n,) scales of vectors, so that `codes * scales` is nearly `vectors`."""
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0), 1e-12) / 127
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def code_products(
    codes: npt.NDArray[np.int8], query: FloatArray, *, parts: int, rows: IntArray | None = None
) -> FloatArray:
    """(n,) float32 product of each row of int8 codes with `query` (d,).

    parts: how many int8 vectors stand for the query; each makes it 127 times as precise.
    rows: (n,) those wanted; default: all.
    """
    total = np.zeros(len(codes) if rows is None else len(rows), dtype=np.float32)
    rest = np.asarray(query, dtype=np.float32)[None]
    for _ in range(parts):
        part, scale = rounded(rest)
        for place, some in _pieces(codes, rows):
            total[place] += np.asarray(simsimd.cdist(part, some, "dot", out_dtype="float32"))[0] * scale
        rest = rest - part * scale[:, None]
    return total


def _pieces(
    codes: npt.NDArray[np.int8], rows: IntArray | None
) -> Iterator[tuple[slice, npt.NDArray[np.int8]]]:
    """Yield places in `rows` and copies of those rows, few at a time: they stay in the cache."""
    if rows is None:
        yield slice(None), codes
        return
    copied = np.empty((min(len(rows), _GATHERED), codes.shape[1]), dtype=np.int8)
    for first in range(0, len(rows), _GATHERED):
        some = rows[first : first + _GATHERED]
        # any mode but "raise" writes into `out` at once, without a copy of its own
        yield (
            slice(first, first + _GATHERED),
            np.take(codes, some, axis=0, out=copied[: len(some)], mode="clip"),
        )
