"""ParetoRAG's weighting of a sentence and its context, computed from the sentence vectors.

    h = alpha * core + (1 - alpha) * context                 ParetoRAG, section 3.2

Contexts are means of vectors or encoded texts. As a mean, the context of sentence i is the token-weighted
mean of the other sentences of its passage, scaled to unit length. Its dot product with a query q follows
from those of the sentences, so nothing more is encoded or stored, and alpha can change with each search:

    q·context_i = (sum_j w_j q·v_j - w_i q·v_i) / r_i,   r_i = |sum_j w_j v_j - w_i v_i|

Differs from the paper: it encodes the contexts; see docs/design.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from precise_rag.index.groups import Groups
from precise_rag.index.headings import WEIGHT, Headings
from precise_rag.index.table import Columns, Shard
from precise_rag.index.vectors import read_vectors
from precise_rag.types import BoolArray, FloatArray, IntArray
from precise_rag.vectors import offsets_of, unit_rows

_SLICE = 8_192
"""Rows read at a time."""
_TINY = 1e-6


@dataclass(frozen=True, slots=True)
class SentenceContexts:
    """The contexts of all sentences.

    passages: the groups of the sentences.
    weights: (n,) w_i of the module's formula: tokens of each sentence.
    residuals: (n,) r_i of the module's formula; 1 if contexts are encoded.
    overlap: (n,) dot product of each sentence with its context.
    present: (n,) whether the sentence has a context.
    encoded: (n, d) vectors of the contexts, or None if contexts are means.
    """

    passages: Groups
    weights: npt.NDArray[np.float64]
    residuals: npt.NDArray[np.float64]
    overlap: npt.NDArray[np.float64]
    present: BoolArray
    encoded: FloatArray | None = None

    @classmethod
    def of_means(cls, columns: Columns, groups: Groups) -> Self:
        """Contexts that are means of the other rows of a group, from columns "vectors" and "n_tokens"."""
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
    def of_vectors(cls, columns: Columns, groups: Groups, encoded: FloatArray) -> Self:
        """Contexts that were encoded: (n, d) rows of unit length, zero for sentences without context."""
        vectors = read_vectors(columns, slice(None))
        overlap = np.einsum("nd,nd->n", vectors, encoded, dtype=np.float64)
        present = np.asarray(encoded.any(axis=1))
        return cls(groups, _weights(columns), np.ones(len(vectors)), overlap, present, encoded)

    def weighted(
        self, core: FloatArray, context: npt.NDArray[Any] | None, alpha: float, *, normalise: bool
    ) -> FloatArray:
        """The module's formula for vectors (n, d) or for their products with a query (n,).

        core, context: of each sentence and of its encoded context; None if contexts are means.
        alpha: weight of the sentence against its context (0 to 1).
        normalise: divide by the length of the weighted vector, for a cosine.
        """
        per_row = (-1,) + (1,) * (core.ndim - 1)
        if context is None:
            weighted = core * self.weights.reshape(per_row)
            others = self.passages.sums(weighted)[self.passages.of_row] - weighted
            context = others / self.residuals.reshape(per_row)
        total = alpha * core + (1 - alpha) * context
        if normalise:
            squares = alpha**2 + (1 - alpha) ** 2 + 2 * alpha * (1 - alpha) * self.overlap
            total /= np.sqrt(np.maximum(squares, _TINY)).reshape(per_row)
        return np.where(self.present.reshape(per_row), total, core).astype(np.float32)


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """The token-weighted mean vector of each group of sentences, for cosines with a query.

    groups: the sentences of each group.
    weights: (n,) w_j: tokens of each sentence.
    norms: (n_groups,) |sum_j w_j v_j|; with it, a mean's cosine follows from those of its sentences.
    headings: (n_groups,) the heading that counts as one more sentence of the group; None without headings.
    """

    groups: Groups
    weights: FloatArray
    norms: FloatArray
    headings: IntArray | None = None

    @classmethod
    def of(cls, shard: Shard, name: str, groups: Groups, headings: Headings | None) -> Self:
        """Prepare the groups of rows of a shard; their norms are kept with it under a name."""
        kept = shard.kept(name, lambda: {"norms": _group_norms(shard.columns, groups, headings)})
        above = None if headings is None else headings.of_row[groups.starts]
        return cls(groups, _weights(shard.columns).astype(np.float32), kept["norms"], above)

    def scores(self, core: FloatArray, headings: FloatArray | None = None) -> FloatArray:
        """(n,) cosine of the query with the mean of each sentence's group.

        core: (n,) cosine of the query with each sentence. headings: (k,) with each heading, if there are any.
        """
        sums: FloatArray = np.add.reduceat(core * self.weights, self.groups.starts)
        return self._means(sums, slice(None), headings)[self.groups.of_row]

    def scores_of(self, rows: IntArray, core: FloatArray, headings: FloatArray | None = None) -> FloatArray:
        """(k,) the `scores` of some rows; core: only the rows of their groups are read."""
        groups, places = np.unique(self.groups.of_row[rows], return_inverse=True)
        members, begins = self.groups.members(groups)
        sums: FloatArray = np.add.reduceat(core[members] * self.weights[members], begins)
        return self._means(sums, groups, headings)[places]

    def _means(self, sums: FloatArray, groups: IntArray | slice, headings: FloatArray | None) -> FloatArray:
        """(k,) cosines of some groups, from the weighted sums of those of their sentences."""
        if headings is not None and self.headings is not None:
            sums += WEIGHT * headings[self.headings[groups]]
        sums /= self.norms[groups]
        return sums


def _group_norms(columns: Columns, groups: Groups, headings: Headings | None) -> FloatArray:
    """(n_groups,) norms of `GroupMeans`, from columns "vectors" and "n_tokens"."""
    weights = _weights(columns)
    norms = np.ones(len(groups.starts))
    for _, members, _, sums in _group_sums(columns, weights, groups):
        if headings is not None:
            sums = sums + WEIGHT * headings.vectors[headings.of_row[groups.starts[members]]]
        norms[members] = np.sqrt(np.einsum("nd,nd->n", sums, sums))
    return np.maximum(norms, _TINY).astype(np.float32)


def _weights(columns: Columns) -> npt.NDArray[np.float64]:
    """(n,) weight of each sentence in a mean: its tokens, at least 1."""
    return np.maximum(columns["n_tokens"], 1).astype(np.float64)


def _group_sums(
    columns: Columns, weights: npt.NDArray[np.float64], groups: Groups
) -> Iterator[tuple[slice, slice, FloatArray, npt.NDArray[np.float64]]]:
    """Yield slices of whole groups, about _SLICE rows each.

    Each is: rows, groups, vectors of the rows (n, d), weighted sums of the groups (k, d).
    """
    first = 0
    while first < len(groups.starts):
        last = max(first + 1, int(np.searchsorted(groups.ends, groups.starts[first] + _SLICE, side="right")))
        rows = slice(int(groups.starts[first]), int(groups.offsets[last]))
        vectors = read_vectors(columns, rows)
        sums = np.add.reduceat(vectors * weights[rows, None], groups.starts[first:last] - rows.start)
        yield rows, slice(first, last), vectors, sums
        first = last


_REACH = 150
"""Tokens on either side of a chunk that are its surroundings: about a paragraph."""
_SHORTEST = 1e-3
"""A sum of vectors this short is zero except for rounding."""


def chunk_vectors(
    vectors: FloatArray, n_tokens: IntArray, starts: IntArray, ends: IntArray, *, alpha: float = 1.0
) -> FloatArray:
    """(m, d) float32 vectors of unit length, one per chunk of one document.

    vectors: (n, d) sentence vectors.
    n_tokens: (n,) tokens of each sentence.
    starts: (m,) first sentence of each chunk.
    ends: (m,) end of each chunk: its last sentence + 1.
    alpha: weight of the chunk (0 to 1); 1 ignores the surroundings. A chunk without any is not weighted.
    """
    weights = np.maximum(n_tokens, 1)
    weighted = np.concatenate([vectors * weights[:, None], np.zeros_like(vectors[:1])]).astype(np.float32)
    sums = _sums(weighted, starts, ends)
    own = unit_rows(sums, shortest=_SHORTEST)
    if alpha == 1:
        return own
    places = offsets_of(weights)
    first = np.searchsorted(places, places[starts] - _REACH)
    behind = np.searchsorted(places, places[ends] + _REACH, side="right") - 1
    around = unit_rows(_sums(weighted, first, behind) - sums, shortest=_SHORTEST)
    mixed = np.where(around.any(axis=1, keepdims=True), alpha * own + (1 - alpha) * around, own)
    return unit_rows(mixed, shortest=_SHORTEST)


def _sums(rows: FloatArray, starts: IntArray, ends: IntArray) -> FloatArray:
    """(m, d) sums of rows[start:end]; no slice is empty, and none reaches the last row."""
    return np.add.reduceat(rows, np.stack([starts, ends], axis=1).ravel())[::2]
