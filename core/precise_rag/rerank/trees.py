"""Gradient-boosted decision trees, evaluated with numpy alone."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from precise_rag.types import FloatArray

_NAMES = ("feature", "threshold", "missing_left", "left", "right", "value")


class Trees:
    """A sum of decision trees over feature rows; a feature that is NaN has a learned branch.

    feature, threshold, missing_left, left, right, value: (n_trees, n_nodes), node 0 the root; a
    leaf is a node that leads to itself. Trees with fewer nodes are padded.
    """

    def __init__(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        self.tensors = {name: tensors[name] for name in _NAMES}

    @classmethod
    def from_sklearn(cls, model: Any) -> Self:
        """The trees of a fitted binary HistGradientBoostingClassifier, its base rate in the first."""
        grown = [predictors[0].nodes for predictors in model._predictors]
        shape = (len(grown), max(map(len, grown)))
        here = np.broadcast_to(np.arange(shape[1]), shape)
        out: dict[str, npt.NDArray[Any]] = {
            "feature": np.zeros(shape, np.uint8),
            "threshold": np.zeros(shape, np.float32),
            "missing_left": np.zeros(shape, np.uint8),
            "left": here.astype(np.uint8),
            "right": here.astype(np.uint8),
            "value": np.zeros(shape, np.float32),
        }
        for tree, nodes in enumerate(grown):
            inner = np.flatnonzero(~nodes["is_leaf"].astype(bool))
            out["feature"][tree, inner] = nodes["feature_idx"][inner]
            out["threshold"][tree, inner] = nodes["num_threshold"][inner]
            out["missing_left"][tree, inner] = nodes["missing_go_to_left"][inner]
            out["left"][tree, inner] = nodes["left"][inner]
            out["right"][tree, inner] = nodes["right"][inner]
            leaves = np.flatnonzero(nodes["is_leaf"])
            out["value"][tree, leaves] = nodes["value"][leaves]
        out["value"][0] += float(np.ravel(model._baseline_prediction)[0])
        return cls(out)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """(n,) sums over the trees for (n, n_features) rows."""
        t = self.tensors
        tree = np.arange(len(t["left"]))
        row = np.arange(len(rows))[:, None]
        node = np.full((len(rows), len(tree)), -1, dtype=np.intp)
        below = np.zeros_like(node)
        while not np.array_equal(node, below):
            node = below
            value = rows[row, t["feature"][tree, node]]
            by_value = value <= t["threshold"][tree, node]
            goes_left = np.where(np.isnan(value), t["missing_left"][tree, node] == 1, by_value)
            below = np.where(goes_left, t["left"][tree, node], t["right"][tree, node]).astype(np.intp)
        total: FloatArray = t["value"][tree, node].sum(axis=1, dtype=np.float32)
        return total
