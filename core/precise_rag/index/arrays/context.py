"""ParetoRAG's weighting of a sentence and its context, as arithmetic on the sentence vectors.

    h = alpha * core + (1 - alpha) * context                 ParetoRAG, section 3.2

With `context="mean"` the context of sentence i is the length-weighted mean of the other sentences
of its passage, normalised. Then its dot product with a query follows from the sentences' own:

    q·context_i = (sum_j w_j q·v_j - w_i q·v_i) / r_i,   r_i = |sum_j w_j v_j - w_i v_i|

so a search reads the sentence vectors once, and alpha costs nothing to change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.vectors import read_vectors
from precise_rag.types import FloatArray

_SLICE = 8_192
_TINY = 1e-6


@dataclass(frozen=True, slots=True)
class SentenceContext:
    """What a search needs beside the sentence vectors.

    overlap: (n,) core·context. present: (n,) whether the sentence has a context.
    weights, residuals: (n,) w_i and r_i of the module's formula, where contexts are means.
    """

    groups: Groups
    weights: npt.NDArray[np.float64]
    residuals: npt.NDArray[np.float64]
    overlap: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]
    encoded: FloatArray | None = None

    @classmethod
    def of_means(cls, columns: Columns, groups: Groups) -> SentenceContext:
        """Contexts that are means of the other rows' "vectors", weighted by "n_tokens"."""
        weights = _weights(columns)
        own = np.empty(len(weights))
        squares = weights**2
        for rows, members, vectors, sums in _group_sums(columns, weights, groups):
            of_row = groups.of_row[rows] - members.start
            own[rows] = np.einsum("nd,nd->n", vectors, sums[of_row], dtype=np.float64)
            squares[rows] += np.einsum("nd,nd->n", sums, sums)[of_row]
        squares -= 2 * weights * own
        residuals = np.sqrt(np.maximum(squares, 0))
        present = (groups.sizes[groups.of_row] > 1) & (residuals > _TINY * weights)
        residuals[~present] = 1
        return cls(groups, weights, residuals, (own - weights) / residuals * present, present)

    @classmethod
    def of_vectors(cls, columns: Columns, groups: Groups, encoded: FloatArray) -> SentenceContext:
        """Contexts that were encoded: (n, d) rows of unit length, zero where there is none."""
        vectors = read_vectors(columns, slice(None))
        overlap = np.einsum("nd,nd->n", vectors, encoded, dtype=np.float64)
        present = np.asarray(encoded.any(axis=1))
        return cls(groups, _weights(columns), np.ones(len(vectors)), overlap, present, encoded)

    def scores(
        self, core: FloatArray, alpha: float, encoded: FloatArray | None = None, *, normalise: bool = True
    ) -> FloatArray:
        """(n,) similarity of each weighted sentence vector with the query.

        core: (n,) that of each sentence alone. encoded: (n,) that of its context, where contexts were
        encoded.
        """
        context: npt.NDArray[Any]
        if encoded is not None:
            context = encoded
        else:
            weighted = core * self.weights
            context = (self.groups.sums(weighted)[self.groups.of_row] - weighted) / self.residuals
        total = alpha * core + (1 - alpha) * context
        if normalise:
            total /= self._norms(alpha)
        return np.where(self.present, total, core).astype(np.float32)

    def vectors(self, core: FloatArray, alpha: float, *, normalise: bool = True) -> FloatArray:
        """(n, d) the weighted sentence vectors themselves, for a store of the caller's."""
        context: npt.NDArray[Any]
        if self.encoded is not None:
            context = self.encoded
        else:
            weighted = core * self.weights[:, None]
            context = (self.groups.sums(weighted)[self.groups.of_row] - weighted) / self.residuals[:, None]
        total = alpha * core + (1 - alpha) * context
        if normalise:
            total /= self._norms(alpha)[:, None]
        return np.where(self.present[:, None], total, core).astype(np.float32)

    def _norms(self, alpha: float) -> npt.NDArray[np.float64]:
        squares = alpha**2 + (1 - alpha) ** 2 + 2 * alpha * (1 - alpha) * self.overlap
        return np.sqrt(np.maximum(squares, _TINY))


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """Groups of sentences, each with the mean of its vectors, weighted by tokens. norms: (n_groups,)
    |sum_j w_j v_j|, all that is needed of the mean itself: its cosine follows from the sentences'."""

    groups: Groups
    weights: npt.NDArray[np.float64]
    norms: npt.NDArray[np.float64]

    @classmethod
    def of(cls, columns: Columns, groups: Groups, norms: npt.NDArray[np.float64] | None = None) -> GroupMeans:
        """From the columns "vectors" and "n_tokens"; norms: those of an earlier one of the same rows."""
        weights = _weights(columns)
        if norms is not None:
            return cls(groups, weights, norms)
        norms = np.ones(len(groups.starts))
        for _, members, _, sums in _group_sums(columns, weights, groups):
            norms[members] = np.sqrt(np.einsum("nd,nd->n", sums, sums))
        return cls(groups, weights, np.maximum(norms, _TINY))

    def scores(self, core: FloatArray) -> FloatArray:
        """(n,) for each sentence the cosine of its group's mean with the query; core: (n,) its own."""
        means = self.groups.sums(core * self.weights) / self.norms
        return means.astype(np.float32)[self.groups.of_row]


def _weights(columns: Columns) -> npt.NDArray[np.float64]:
    """(n,) what a sentence counts in a mean: its tokens, and one where it has none."""
    return np.maximum(columns["n_tokens"], 1).astype(np.float64)


def _group_sums(
    columns: Columns, weights: npt.NDArray[np.float64], groups: Groups
) -> Iterator[tuple[slice, slice, FloatArray, npt.NDArray[np.float64]]]:
    """Rows, groups, the rows' vectors and the groups' (k, d) weighted sums: whole groups, about
    _SLICE rows at a time."""
    ends = np.append(groups.starts[1:], len(weights))
    first = 0
    while first < len(groups.starts):
        last = max(first + 1, int(np.searchsorted(ends, groups.starts[first] + _SLICE, side="right")))
        rows = slice(int(groups.starts[first]), int(ends[last - 1]))
        vectors = read_vectors(columns, rows)
        sums = np.add.reduceat(vectors * weights[rows, None], groups.starts[first:last] - rows.start)
        yield rows, slice(first, last), vectors, sums
        first = last
