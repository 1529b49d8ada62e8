"""The networks in torch, for training. Inference reads the same weights with numpy (small.py, sage.py)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallConfig:
    """Shape of the small model. windows: sentences on each side whose likeness is compared."""

    vocabulary: int
    dimension: int = 96
    cue_dimension: int = 24
    first_tokens: int = 4
    last_tokens: int = 2
    hidden: int = 96
    kernel: int = 5
    windows: tuple[int, ...] = (1, 2, 4, 8)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for config.json."""
        return asdict(self)


class SmallNetwork(nn.Module):
    """Static token vectors, cues and a window of sentences to two logits per gap.

    Source: none of the papers; SAGE's pair of sentences (section IV) becomes a window, and its
    encoder a table.
    """

    def __init__(self, config: SmallConfig) -> None:
        super().__init__()
        c = self.config = config
        self.vectors = nn.Parameter(torch.randn(c.vocabulary, c.dimension) / c.dimension**0.5)
        self.weights = nn.Parameter(torch.zeros(c.vocabulary))
        self.cues = nn.Parameter(torch.randn(c.vocabulary, c.cue_dimension) * 0.3)
        n_cues = c.first_tokens + c.last_tokens
        self.inner = nn.Linear(c.dimension + n_cues * c.cue_dimension + 2, c.hidden)
        self.convolution1 = nn.Conv1d(c.hidden, c.hidden, c.kernel, padding=c.kernel // 2)
        self.convolution2 = nn.Conv1d(c.hidden, c.hidden, c.kernel, padding=c.kernel // 2)
        self.gap = nn.Linear(2 * c.hidden + c.dimension + len(c.windows), c.hidden)
        self.out = nn.Linear(c.hidden, 2)

    def forward(
        self, ids: Tensor, offsets: Tensor, places: Tensor, n_places: int, dropout: float = 0.0
    ) -> Tensor:
        """(n_places, 2) logits of "a paragraph, a section ends here".

        ids: (t,) tokens of n sentences; offsets: (n + 1,) where each begins; places: (n,) the row
        of each sentence in a line of n_places rows, where documents are PAD rows apart.
        """
        c = self.config
        starts, ends = offsets[:-1], offsets[1:]
        weights = F.softplus(self.weights)[ids]
        if dropout:
            weights = weights * (torch.rand_like(weights) > dropout)
        pooled = F.embedding_bag(ids, self.vectors, starts, mode="sum", per_sample_weights=weights)
        pooled = F.normalize(pooled, dim=1)
        steps = torch.arange(c.first_tokens, device=ids.device)
        first = starts[:, None] + steps
        last = ends[:, None] - 1 - steps[: c.last_tokens]
        cues = torch.cat(
            [
                self.cues[ids[first.clamp(max=len(ids) - 1)]] * (first < ends[:, None])[..., None],
                self.cues[ids[last.clamp(min=0)]] * (last >= starts[:, None])[..., None],
            ],
            dim=1,
        ).flatten(1)
        length = torch.log((ends - starts).float())[:, None] / 4
        x = torch.cat([pooled, cues, length, length > 0.6], dim=1)
        h = self.inner(F.dropout(x, dropout, self.training)).relu()
        mask = _in_places(torch.ones(len(places), 1, device=ids.device), places, n_places)
        rows = _in_places(h, places, n_places)
        line = _in_places(pooled, places, n_places)
        for layer in (self.convolution1, self.convolution2):
            rows = rows + layer(rows.T[None])[0].T.relu() * mask
        gap = torch.cat([rows, _next(rows), line * _next(line), *cohesion(line, c.windows)], dim=1)
        logits: Tensor = self.out(F.dropout(self.gap(gap).relu(), dropout, self.training))
        return logits


@dataclass(frozen=True, slots=True, kw_only=True)
class SageConfig:
    """Shape of SAGE's head on sentence vectors.

    features: what an MLP reads of a pair (section IV-B). context: whether it also sees the
    sentences around the pair, by two convolutions and the likeness of windows.
    """

    dimension: int
    features: tuple[str, ...] = ("x1", "x2", "x1-x2", "x1*x2")
    context: bool = True
    hidden: int = 128
    kernel: int = 5
    windows: tuple[int, ...] = (1, 2, 4, 8)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for config.json."""
        return asdict(self)


class SageNetwork(nn.Module):
    """Sentence vectors to two logits per gap: SAGE's MLP, with or without a view of the context."""

    def __init__(self, config: SageConfig) -> None:
        super().__init__()
        c = self.config = config
        width = len(c.features) * c.dimension
        if c.context:
            self.inner = nn.Linear(c.dimension, c.hidden)
            self.convolution1 = nn.Conv1d(c.hidden, c.hidden, c.kernel, padding=c.kernel // 2)
            self.convolution2 = nn.Conv1d(c.hidden, c.hidden, c.kernel, padding=c.kernel // 2)
            width += 2 * c.hidden + len(c.windows)
        self.gap = nn.Linear(width, c.hidden)
        self.out = nn.Linear(c.hidden, 2)

    def forward(self, vectors: Tensor, places: Tensor, n_places: int, dropout: float = 0.0) -> Tensor:
        """(n_places, 2) logits of "a paragraph, a section ends here".

        vectors: (n, d) of unit length; places: (n,) as in SmallNetwork. Their components are made
        about 1 first: products of the small ones they are would be too slow to learn from.
        """
        c = self.config
        line = _in_places(vectors * c.dimension**0.5, places, n_places)
        left, right = line, _next(line)
        pairs = {"x1": left, "x2": right, "x1-x2": left - right, "x1*x2": left * right}
        columns = [pairs[name] for name in c.features]
        if c.context:
            mask = _in_places(torch.ones(len(places), 1, device=vectors.device), places, n_places)
            rows = self.inner(F.dropout(line, dropout, self.training)).relu() * mask
            for layer in (self.convolution1, self.convolution2):
                rows = rows + layer(rows.T[None])[0].T.relu() * mask
            columns += [rows, _next(rows), *cohesion(line, c.windows)]
        hidden = self.gap(F.dropout(torch.cat(columns, dim=1), dropout, self.training)).relu()
        logits: Tensor = self.out(F.dropout(hidden, dropout, self.training))
        return logits


def _in_places(rows: Tensor, places: Tensor, n_places: int) -> Tensor:
    return rows.new_zeros(n_places, rows.shape[1]).index_copy(0, places, rows)


def cohesion(line: Tensor, windows: tuple[int, ...]) -> list[Tensor]:
    """(n, 1) columns: the cosine of the sums of `window` rows before and after each gap."""
    columns, before, width = [], line, 1
    for window in windows:
        while width < window:
            before, width = before + F.pad(before, (0, 0, width, 0))[: len(line)], 2 * width
        after = F.pad(before, (0, 0, 0, width))[width:]
        columns.append(F.cosine_similarity(before, after, dim=1)[:, None])
    return columns


def _next(rows: Tensor) -> Tensor:
    return F.pad(rows, (0, 0, 0, 1))[1:]


def small_tensors(network: SmallNetwork) -> dict[str, Any]:
    """The network's weights as the arrays that SmallModel reads."""
    tensors = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    tensors["weights"] = F.softplus(network.weights.detach()).cpu().numpy()[:, None]
    return tensors


def sage_tensors(network: SageNetwork) -> dict[str, Any]:
    """The network's weights as the arrays that SageModel reads, for vectors of unit length."""
    c = network.config
    tensors = {name: value.detach().cpu().numpy().copy() for name, value in network.state_dict().items()}
    scale = c.dimension**0.5
    for place, name in enumerate(c.features):
        columns = slice(place * c.dimension, (place + 1) * c.dimension)
        tensors["gap.weight"][:, columns] *= scale**2 if name == "x1*x2" else scale
    if c.context:
        tensors["inner.weight"] *= scale
    return tensors
