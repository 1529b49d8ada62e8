"""One line of what is known of each candidate, as a probability."""

from collections.abc import Mapping

import numpy as np

from precise_rag.types import FloatArray

Columns = Mapping[str, FloatArray | float]


class Blend:
    """Probabilities that are a logistic line of some columns; `weights` by column, and "offset".

    A column that is the same for a whole list (how good its best candidate looks) moves the level
    of its probabilities and leaves their order.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = {name: weight for name, weight in weights.items() if name != "offset"}
        self._offset = weights.get("offset", 0.0)

    def __call__(self, columns: Columns) -> FloatArray:
        """(n,) probabilities from columns of n values, or of one for all."""
        line = sum(
            (w * np.asarray(columns[name]) for name, w in self._weights.items()), np.float64(self._offset)
        )
        probabilities: FloatArray = (1.0 / (1.0 + np.exp(-np.clip(line, -700.0, 700.0)))).astype(np.float32)
        return probabilities


def log_odds(probabilities: FloatArray) -> FloatArray:
    """(n,) log-odds of probabilities, those of 0 and 1 finite."""
    inside = np.clip(probabilities.astype(np.float64), 1e-7, 1.0 - 1e-7)
    odds: FloatArray = np.log(inside / (1.0 - inside)).astype(np.float32)
    return odds
