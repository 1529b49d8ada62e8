"""Logistic regression over named columns, its inverse, and probabilities in another order."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.types import FloatArray
from precise_rag.vectors import probabilities


class LogisticRegression:
    """Probabilities from a weighted sum of named columns.

    weights: weight of each column by its name; "offset" (default: 0) is added to the sum. A column
    that is the same for a whole list raises or lowers all its probabilities and keeps their order.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = {name: weight for name, weight in weights.items() if name != "offset"}
        self._offset = weights.get("offset", 0.0)

    def __call__(self, columns: Mapping[str, FloatArray | float]) -> FloatArray:
        """Return (n,) probabilities.

        columns: values by name, (n,) or one number for all. Columns without a weight are ignored.
        Raises KeyError if a column that has a weight is missing.
        """
        weights = self._weights.items()
        odds = sum((w * np.asarray(columns[name], np.float64) for name, w in weights), self._offset)
        return probabilities(odds).astype(np.float32)


def log_odds(probable: npt.ArrayLike, *, margin: float = 1e-7) -> FloatArray:
    """Return the (n,) log-odds of probabilities, which are first clipped to [margin, 1 - margin]."""
    inside = np.clip(np.asarray(probable, dtype=np.float64), margin, 1.0 - margin)
    return np.log(inside / (1.0 - inside)).astype(np.float32)


def matched(order: npt.NDArray[np.floating[Any]], levels: FloatArray) -> FloatArray:
    """Return the (n,) `levels` in another order: the largest where `order` is largest, and so on.

    order: (n,) scores. Equal ones are told apart by `levels`; where it is NaN, the level stays.
    """
    moved = levels.copy()
    rows = np.flatnonzero(~np.isnan(order))
    moved[rows[np.lexsort((-levels[rows], -order[rows]))]] = np.sort(levels[rows])[::-1]
    return moved
