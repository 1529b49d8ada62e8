"""Weights that blend two models' logits, fitted on documents that neither was trained on."""

from __future__ import annotations

import numpy as np

from precise_rag._extras import require
from precise_rag.segmentation.sage import blend
from precise_rag.segmentation.training.labelled_documents import UNKNOWN, LabelArray
from precise_rag.types import FloatArray, IntArray


def fit_blend_weights(first: FloatArray, second: FloatArray, targets: LabelArray) -> FloatArray:
    """Return the (3, 2) weights of `sage.blend`, by logistic regression for each column.

    first, second: (n, 2) logits of two models. targets: (n, 2) labels, some UNKNOWN. A column without
    labels of both kinds takes the second model alone.
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
    """Return (n, 2) blended logits whose weights were fitted on the other half of the rows.

    Figures of these logits are not flattered by the fit. half: (n,) 0 or 1.
    """
    blended = np.zeros_like(first, dtype=np.float32)
    for side in (0, 1):
        weights = fit_blend_weights(first[half != side], second[half != side], targets[half != side])
        blended[half == side] = blend(first[half == side], second[half == side], weights)
    return blended
