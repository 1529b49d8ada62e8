"""Two models' logits as one, weighed on documents that neither was trained on."""

from __future__ import annotations

import numpy as np

from precise_rag._extras import require
from precise_rag.segmentation.training.data import UNKNOWN, LabelArray
from precise_rag.types import FloatArray, IntArray


def blend(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """(n, 2) the weighted sum of two models' logits. weights: (3, 2) of the first, the second, and 1."""
    mixed: FloatArray = (weights[0] * first + weights[1] * second + weights[2]).astype(np.float32)
    return mixed


def fit_weights(first: FloatArray, second: FloatArray, targets: LabelArray) -> FloatArray:
    """(3, 2) weights by logistic regression, a column at a time; the second model alone without labels.

    first, second: (n, 2) logits. targets: (n, 2), some UNKNOWN.
    """
    weights = np.array([[0, 0], [1, 1], [0, 0]], dtype=np.float64)
    for column in range(2):
        known = targets[:, column] != UNKNOWN
        labels = targets[known, column] == 1
        if 0 < labels.sum() < len(labels):
            rows = np.stack([first[known, column], second[known, column]], axis=1)
            fit = require("sklearn.linear_model", extra="train").LogisticRegression().fit(rows, labels)
            weights[:, column] = *fit.coef_[0], fit.intercept_[0]
    fitted: FloatArray = weights.astype(np.float32)
    return fitted


def blend_by_halves(first: FloatArray, second: FloatArray, targets: LabelArray, half: IntArray) -> FloatArray:
    """(n, 2) blended logits, the weights of each half (0 or 1) fitted on the other: for honest figures."""
    mixed = np.zeros_like(first, dtype=np.float32)
    for side in (0, 1):
        weights = fit_weights(first[half != side], second[half != side], targets[half != side])
        mixed[half == side] = blend(first[half == side], second[half == side], weights)
    return mixed
