"""Fitting of the weights of a `LogisticRegression` to lists of candidates."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch.nn import functional as F


class _Lists:
    """Padded lists: z (n, width, columns) standardised columns, y (n, width) truth, there (n, width)."""

    def __init__(
        self,
        columns: Sequence[Mapping[str, np.ndarray | float]],
        truth: Sequence[np.ndarray],
        list_weights: Sequence[float],
    ) -> None:
        self.names = list(columns[0])
        width = max(map(len, truth))
        x = torch.zeros(len(truth), width, len(self.names))
        self.y = torch.zeros(len(truth), width)
        self.there = torch.zeros(len(truth), width, dtype=torch.bool)
        for row, (of_list, relevant) in enumerate(zip(columns, truth, strict=True)):
            n = len(relevant)
            values = [np.broadcast_to(of_list[name], n) for name in self.names]
            x[row, :n] = torch.from_numpy(np.stack(values, axis=1).astype(np.float32))
            self.y[row, :n] = torch.from_numpy(relevant.astype(np.float32))
            self.there[row, :n] = True
        shares = torch.tensor(list_weights, dtype=torch.float32)
        self.shares = shares / shares.sum()
        self.mean, self.deviation = x[self.there].mean(0), x[self.there].std(0) + 1e-6
        self.z = (x - self.mean) / self.deviation

    def minimised(self, loss: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """Return weights of the standardised columns, and an offset, with the least loss of the logits.

        loss: of (n, width) logits, (n,) for each list.
        """
        parameters = torch.zeros(len(self.names) + 1, requires_grad=True)
        optimizer = torch.optim.LBFGS([parameters], max_iter=200, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            per_list = loss(self.z @ parameters[:-1] + parameters[-1])
            total = (self.shares * per_list).sum() + 1e-4 * (parameters[:-1] ** 2).sum()
            total.backward()
            return total

        optimizer.step(closure)
        return parameters.detach()


def fit_logistic_regression(
    columns: Sequence[Mapping[str, np.ndarray | float]],
    truth: Sequence[np.ndarray],
    list_weights: Sequence[float],
) -> dict[str, float]:
    """Return the weight of each column, and "offset", by cross-entropy of the candidates.

    columns: the columns of each list. truth: (n,) which of its candidates are relevant. list_weights: of
    each list in the loss.
    """
    lists = _Lists(columns, truth, list_weights)
    n = lists.there.sum(1).clamp(min=1)
    parameters = lists.minimised(
        lambda logits: (
            (F.binary_cross_entropy_with_logits(logits, lists.y, reduction="none") * lists.there).sum(1) / n
        )
    )
    weights = parameters[:-1] / lists.deviation
    offset = float(parameters[-1] - (weights * lists.mean).sum())
    return {**{name: float(w) for name, w in zip(lists.names, weights, strict=True)}, "offset": offset}


def fit_order(
    columns: Sequence[Mapping[str, np.ndarray]],
    truth: Sequence[np.ndarray],
    list_weights: Sequence[float],
) -> dict[str, float]:
    """Return the weight of each column, and "offset": the proportion by the order within lists.

    Queries differ in the level of their scores, so cross-entropy of all candidates together says little of
    how columns order those of one query. A listwise softmax fits the proportion of the weights; their common
    factor and the offset are fitted as by `fit_logistic_regression`. Arguments: as there.
    """
    lists = _Lists(columns, truth, list_weights)
    n = lists.y.sum(1)

    def order(logits: torch.Tensor) -> torch.Tensor:
        log_shares = F.log_softmax(logits.masked_fill(~lists.there, -1e4), dim=1)
        return -(log_shares * lists.y).sum(1) / n.clamp(min=1)

    weights = lists.minimised(order)[:-1] / lists.deviation
    proportion = {name: float(w) for name, w in zip(lists.names, weights, strict=True)}
    sums = [{"sum": sum(proportion[name] * one[name] for name in proportion)} for one in columns]
    level = fit_logistic_regression(sums, truth, list_weights)
    return {name: level["sum"] * w for name, w in proportion.items()} | {"offset": level["offset"]}
