"""Neighbours of the pieces of one document: those few characters away. Time is n log n."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precise_rag.types import FloatArray


class Spans(NamedTuple):
    """Places of n pieces of one document: their starts and ends, (n,) each, in any order.

    Two pieces are neighbours if fewer than `reach` characters lie between them. A piece is no
    neighbour of itself.
    """

    starts: Sequence[int]
    ends: Sequence[int]
    reach: int

    def best_near(self, values: FloatArray) -> FloatArray:
        """Return the (n,) largest value of each piece's neighbours.

        values: (n,). Minus infinity stands for no neighbour, NaN for a neighbour whose value is NaN.
        """
        best = self._largest(np.where(np.isnan(values), -math.inf, values))
        if np.isnan(values).any():
            best[self._largest(np.where(np.isnan(values), 1.0, 0.0)) == 1.0] = math.nan
        return best

    def has_near(self, rows: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return (n,) whether a piece or one of its neighbours is among `rows`."""
        starts = np.asarray([self.starts[row] for row in rows])
        order = np.argsort(starts)
        reached = np.maximum.accumulate(np.asarray([self.ends[row] for row in rows])[order])
        before = np.searchsorted(starts[order], np.asarray(self.ends) + self.reach)
        near = reached[np.maximum(before - 1, 0)] > np.asarray(self.starts) - self.reach
        return near & (before > 0)

    def _largest(self, values: FloatArray) -> FloatArray:
        """Sweep over the starts; a tree over the ends holds the best two pieces, to leave one out."""
        n = len(self.starts)
        falling = sorted(self.ends, reverse=True)
        rising = [-end for end in falling]
        tree = _BestTwo(n)
        by_start = sorted(range(n), key=self.starts.__getitem__)
        best = np.full(n, -math.inf)
        added = 0
        for row in sorted(range(n), key=self.ends.__getitem__):
            while added < n and self.starts[by_start[added]] < self.ends[row] + self.reach:
                other = by_start[added]
                tree.add(bisect_left(rising, -self.ends[other]), float(values[other]), other)
                added += 1
            best[row] = tree.best_before(bisect_left(rising, -(self.starts[row] - self.reach)), row)
        return best


class _BestTwo:
    """A Fenwick tree: the best two values of different rows before a place."""

    def __init__(self, n: int) -> None:
        self._first = [(-math.inf, -1)] * (n + 1)
        self._second = [-math.inf] * (n + 1)

    def add(self, place: int, value: float, row: int) -> None:
        """Add a row at a place from 0 to n - 1."""
        place += 1
        while place < len(self._first):
            if value > self._first[place][0]:
                self._second[place] = self._first[place][0]
                self._first[place] = (value, row)
            elif value > self._second[place]:
                self._second[place] = value
            place += place & -place

    def best_before(self, place: int, without: int) -> float:
        """Return the best value at places below `place`, of any row except `without`."""
        best = -math.inf
        while place > 0:
            value, row = self._first[place]
            best = max(best, self._second[place] if row == without else value)
            place -= place & -place
        return best
