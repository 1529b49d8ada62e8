"""Consecutive rows in groups: the sentences of a chunk or of a passage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.top import top_rows
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import slice_places


@dataclass(frozen=True, slots=True)
class Groups:
    """Consecutive rows in groups; group g has rows starts[g] to starts[g + 1].

    starts: (n_groups,) first row of each group.
    of_row: (n,) group of each row.
    """

    starts: IntArray
    of_row: IntArray

    @classmethod
    def by_change(cls, *keys: npt.NDArray[np.int64]) -> Groups:
        """Begin a new group wherever one of the (n,) or (n, k) keys changes."""
        changes = np.zeros(len(keys[0]), dtype=bool)
        changes[:1] = True
        for key in keys:
            different = key[1:] != key[:-1]
            changes[1:] |= different.any(axis=1) if different.ndim == 2 else different
        return cls(np.flatnonzero(changes), np.cumsum(changes) - 1)

    @property
    def sizes(self) -> IntArray:
        """(n_groups,) number of rows in each group."""
        return np.diff(np.append(self.starts, len(self.of_row)))

    def rows(self, group: int) -> tuple[int, int]:
        """Return the first row of a group and the row behind its last."""
        end = self.starts[group + 1] if group + 1 < len(self.starts) else len(self.of_row)
        return int(self.starts[group]), int(end)

    def members(self, groups: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows of some groups, one group after another, and where each group begins among them."""
        ends = np.append(self.starts[1:], len(self.of_row))
        sizes = ends[groups] - self.starts[groups]
        return slice_places(self.starts[groups], sizes), np.cumsum(sizes) - sizes

    def spans(self, spans: IntArray) -> IntArray:
        """(n_groups, 2) from the first row's start to the last row's end; spans: (n, 2) of the rows."""
        last = self.starts + self.sizes - 1
        return np.stack([spans[self.starts, 0], spans[last, 1]], axis=1)

    def sums(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(n_groups, …) sum of each group's rows."""
        total: npt.NDArray[np.float64] = np.add.reduceat(values, self.starts, axis=0)
        return total

    def best_rows(self, scores: FloatArray, top_k: int) -> IntArray:
        """Rows with the best score in their group, for the `top_k` best groups, best first.

        scores: (n,) score of each row.
        """
        best = top_rows(np.maximum.reduceat(scores, self.starts), top_k)
        sizes = self.sizes
        return np.array(
            [a + scores[a : a + sizes[g]].argmax() for g, a in zip(best, self.starts[best], strict=True)],
            dtype=np.int64,
        )
