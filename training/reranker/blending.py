"""The weights of a `Blend`: a logistic line of a few columns, fitted to lists."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch.nn import functional as F

Columns = Mapping[str, np.ndarray | float]


def fit_blend(
    columns: Sequence[Columns], truth: Sequence[np.ndarray], weight: Sequence[float], *, order: float = 1.0
) -> dict[str, float]:
    """Weights by column, and "offset", that make the candidates' probabilities likely.

    columns, truth: of each list. weight: what each list counts. order: what a listwise softmax over the
    relevant ones counts, beside 50 times the mean cross-entropy of a list's candidates.
    """
    names = list(columns[0])
    width = max(map(len, truth))
    x = torch.zeros(len(truth), width, len(names))
    y = torch.zeros(len(truth), width)
    there = torch.zeros(len(truth), width, dtype=torch.bool)
    for row, (of, true) in enumerate(zip(columns, truth, strict=True)):
        values = [np.broadcast_to(of[name], len(true)) for name in names]
        x[row, : len(true)] = torch.from_numpy(np.stack(values, axis=1).astype(np.float32))
        y[row, : len(true)] = torch.from_numpy(true.astype(np.float32))
        there[row, : len(true)] = True
    counts = torch.tensor(weight, dtype=torch.float32)
    counts /= counts.sum()
    mean, deviation = x[there].mean(0), x[there].std(0) + 1e-6
    z = (x - mean) / deviation
    line = torch.zeros(len(names) + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([line], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        logits = z @ line[:-1] + line[-1]
        each = F.binary_cross_entropy_with_logits(logits, y, reduction="none") * there
        level = each.sum(1) / there.sum(1).clamp(min=1)
        chosen = F.log_softmax(logits.masked_fill(~there, -1e4), dim=1) * y
        listwise = -chosen.sum(1) / y.sum(1).clamp(min=1)
        loss = (counts * (level + order / 50 * listwise)).sum() + 1e-4 * (line[:-1] ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    weights = (line[:-1] / deviation).detach()
    offset = float(line[-1].detach() - (weights * mean).sum())
    return {**{name: float(w) for name, w in zip(names, weights, strict=True)}, "offset": offset}
