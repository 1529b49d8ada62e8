"""Fitting of the weights of a `LogisticRegression` to lists of candidates."""

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

_STRENGTH = 5_000.0
"""Inverse of the penalty on the squares of standardised weights."""


def fit_logistic_regression(
    columns: Sequence[Mapping[str, np.ndarray]],
    truth: Sequence[np.ndarray],
    list_weights: Sequence[float],
) -> dict[str, float]:
    """Return the weight of each column, and "offset", by cross-entropy of the candidates.

    columns: the columns of each list. truth: (n,) which of its candidates are relevant. list_weights: of
    each list in the loss.
    """
    names = list(columns[0])
    x = np.concatenate([np.column_stack([of_list[name] for name in names]) for of_list in columns])
    shares = [np.full(len(y), weight / max(len(y), 1)) for y, weight in zip(truth, list_weights, strict=True)]
    weights = np.concatenate(shares) / sum(list_weights)
    mean, deviation = x.mean(0), x.std(0) + 1e-6
    model = LogisticRegression(C=_STRENGTH, max_iter=1_000)
    model.fit((x - mean) / deviation, np.concatenate(truth), sample_weight=weights)
    slopes = model.coef_[0] / deviation
    offset = float(model.intercept_[0] - (slopes * mean).sum())
    return dict(zip(names, slopes.tolist(), strict=True)) | {"offset": offset}
