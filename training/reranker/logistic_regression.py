"""Fitting of the weights of a `LogisticRegression` to lists of candidates."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch.nn import functional as F


def fit_logistic_regression(
    columns: Sequence[Mapping[str, np.ndarray | float]],
    truth: Sequence[np.ndarray],
    list_weights: Sequence[float],
) -> dict[str, float]:
    """Return the weight of each column, and "offset", by cross-entropy of the candidates.

    columns: the columns of each list. truth: (n,) which of its candidates are relevant. list_weights: of
    each list in the loss.
    """
    names = list(columns[0])
    width = max(map(len, truth))
    x = torch.zeros(len(truth), width, len(names))
    y = torch.zeros(len(truth), width)
    there = torch.zeros(len(truth), width, dtype=torch.bool)
    for row, (of_list, relevant) in enumerate(zip(columns, truth, strict=True)):
        n = len(relevant)
        values = [np.broadcast_to(of_list[name], n) for name in names]
        x[row, :n] = torch.from_numpy(np.stack(values, axis=1).astype(np.float32))
        y[row, :n] = torch.from_numpy(relevant.astype(np.float32))
        there[row, :n] = True
    shares = torch.tensor(list_weights, dtype=torch.float32)
    shares /= shares.sum()
    mean, deviation = x[there].mean(0), x[there].std(0) + 1e-6
    z = (x - mean) / deviation
    parameters = torch.zeros(len(names) + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([parameters], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        logits = z @ parameters[:-1] + parameters[-1]
        each = F.binary_cross_entropy_with_logits(logits, y, reduction="none") * there
        per_list = each.sum(1) / there.sum(1).clamp(min=1)
        loss = (shares * per_list).sum() + 1e-4 * (parameters[:-1] ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    weights = (parameters[:-1] / deviation).detach()
    offset = float(parameters[-1].detach() - (weights * mean).sum())
    return {**{name: float(w) for name, w in zip(names, weights, strict=True)}, "offset": offset}
