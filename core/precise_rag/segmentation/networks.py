"""The networks in torch, for training and for a GPU; small.py and sage.py have the same weights in numpy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from precise_rag.segmentation.features import CURVE_WIDTH
from precise_rag.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallConfig:
    """Sizes of the small model.

    vocabulary: word pieces. dimension, cue_dimension: of the vectors and cues of a piece. first_tokens,
    last_tokens: tokens of a sentence that give cues. hidden: width of the hidden layers. kernel:
    sentences that a convolution covers. windows: lengths of the windows whose cohesion is compared.
    """

    vocabulary: int
    dimension: int = 96
    cue_dimension: int = 24
    first_tokens: int = 4
    last_tokens: int = 2
    hidden: int = 96
    kernel: int = 5
    windows: tuple[int, ...] = (1, 2, 4, 8)


class SmallNetwork(nn.Module):
    """The small model: two logits per gap from token vectors, cues and a window of sentences.

    Not from the papers: in place of SAGE's encoder it has a table, and in place of its pair of
    sentences (section IV) a window.
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
        """Return (n_places, 2) logits of "a paragraph ends here" and "a section ends here".

        ids: (t,) tokens of n sentences. offsets: (n + 1,) where each sentence begins. places: (n,) the
        row of each sentence in a line of n_places rows, as in Batch. dropout: 0 to 1; default 0.
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
        rows = _with_context(rows, mask, (self.convolution1, self.convolution2))
        gap = torch.cat([rows, _next(rows), line * _next(line), *_cohesion(line, c.windows)], dim=1)
        logits: Tensor = self.out(F.dropout(self.gap(gap).relu(), dropout, self.training))
        return logits


@dataclass(frozen=True, slots=True, kw_only=True)
class SageConfig:
    """Sizes of SAGE's head on sentence vectors.

    dimension: of the vectors. context: whether the head also sees the sentences around the pair. hidden,
    kernel, windows: as in SmallConfig. curve: channels that follow how alike the windows are around the gaps
    near the pair, with context.
    """

    dimension: int
    context: bool = True
    hidden: int = 128
    curve: int = 32
    kernel: int = 5
    windows: tuple[int, ...] = (1, 2, 4, 8)


class SageNetwork(nn.Module):
    """SAGE's head: two logits per gap from sentence vectors, with or without their context.

    Source: SAGE, section IV-B. Differs: the context.
    """

    def __init__(self, config: SageConfig) -> None:
        super().__init__()
        c = self.config = config
        width = 4 * c.dimension
        if c.context:
            self.inner = nn.Linear(c.dimension, c.hidden)
            self.convolution1 = nn.Conv1d(c.hidden, c.hidden, c.kernel, padding=c.kernel // 2)
            self.convolution2 = nn.Conv1d(c.hidden, c.hidden, c.kernel, padding=c.kernel // 2)
            columns = 3 * len(c.windows) - 2 * (1 in c.windows)
            self.curve1 = nn.Conv1d(columns, c.curve, CURVE_WIDTH, padding=CURVE_WIDTH // 2)
            self.curve2 = nn.Conv1d(c.curve, c.curve, CURVE_WIDTH, padding=CURVE_WIDTH // 2)
            width += 2 * c.hidden + len(c.windows) + c.curve
        self.gap = nn.Linear(width, c.hidden)
        self.out = nn.Linear(c.hidden, 2)

    def forward(self, vectors: Tensor, places: Tensor, n_places: int, dropout: float = 0.0) -> Tensor:
        """Return (n_places, 2) logits, as SmallNetwork does.

        vectors: (n, d), unit length. They are scaled so that their components are about 1: training
        would learn too slowly from products of small numbers.
        """
        c = self.config
        line = _in_places(vectors * c.dimension**0.5, places, n_places)
        columns = [line, _next(line), line - _next(line), line * _next(line)]
        if c.context:
            mask = _in_places(torch.ones(len(places), 1, device=vectors.device), places, n_places)
            rows = self.inner(F.dropout(line, dropout, self.training)).relu() * mask
            rows = _with_context(rows, mask, (self.convolution1, self.convolution2))
            likeness = torch.cat(_cohesion(line, c.windows), dim=1)
            around = [likeness, *_closeness(_in_places(vectors, places, n_places), mask, c.windows)]
            first = self.curve1((torch.cat(around, dim=1) * mask).T[None])[0].T.relu() * mask
            columns += [rows, _next(rows), likeness, _with_context(first, mask, (self.curve2,))]
        hidden = self.gap(F.dropout(torch.cat(columns, dim=1), dropout, self.training)).relu()
        logits: Tensor = self.out(F.dropout(hidden, dropout, self.training))
        return logits


def _in_places(rows: Tensor, places: Tensor, n_places: int) -> Tensor:
    return rows.new_zeros(n_places, rows.shape[1]).index_copy(0, places, rows)


def _with_context(rows: Tensor, mask: Tensor, layers: Sequence[nn.Module]) -> Tensor:
    """As `features.with_context`; rows that are 0 in the mask stay 0."""
    for layer in layers:
        rows = rows + layer(rows.T[None])[0].T.relu() * mask
    return rows


def _cohesion(line: Tensor, windows: tuple[int, ...]) -> list[Tensor]:
    """As `features.cohesion`, in (n, 1) columns."""
    columns, before, width = [], line, 1
    for window in windows:
        while width < window:
            before, width = before + F.pad(before, (0, 0, width, 0))[: len(line)], 2 * width
        after = F.pad(before, (0, 0, 0, width))[width:]
        columns.append(F.cosine_similarity(before, after, dim=1)[:, None])
    return columns


def _closeness(line: Tensor, mask: Tensor, windows: tuple[int, ...]) -> list[Tensor]:
    """As `features.closeness`, in (n, 1) columns. mask: (n, 1), 1 where there is a sentence."""
    columns, before, count, width = [], line, mask, 1
    for window in windows:
        while width < window:
            before, count = (x + F.pad(x, (0, 0, width, 0))[: len(line)] for x in (before, count))
            width *= 2
        if window > 1:
            length = before.norm(dim=1, keepdim=True) / count.clamp(min=1)
            columns += [length, F.pad(length, (0, 0, 0, window))[window:]]
    return columns


def _next(rows: Tensor) -> Tensor:
    return F.pad(rows, (0, 0, 0, 1))[1:]


def small_tensors(network: SmallNetwork) -> dict[str, Any]:
    """Return the network's weights as the arrays that SmallModel reads."""
    tensors = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    tensors["weights"] = F.softplus(network.weights.detach()).cpu().numpy()[:, None]
    return tensors


def small_network(config: Mapping[str, Any], tensors: Mapping[str, Any]) -> SmallNetwork:
    """Return the network of a saved model, from what SmallModel reads: the inverse of `small_tensors`."""
    sizes = {field.name: config[field.name] for field in fields(SmallConfig) if field.name != "vocabulary"}
    sizes["windows"] = tuple(sizes["windows"])
    network = SmallNetwork(SmallConfig(vocabulary=len(tensors["vectors"]), **sizes))
    given = {name: torch.from_numpy(np.array(value)) for name, value in tensors.items()}
    weights = given["weights"][:, 0].double().clamp(min=1e-6)
    given["weights"] = torch.log(torch.expm1(weights)).float()
    network.load_state_dict(given)
    return network


def sage_network(config: Mapping[str, Any], tensors: Mapping[str, Any]) -> SageNetwork:
    """Return the network of a saved model, from what SageModel reads: the inverse of `sage_tensors`."""
    sizes = {field.name: config[field.name] for field in fields(SageConfig)}
    c = SageConfig(**{**sizes, "windows": tuple(sizes["windows"])})
    network = SageNetwork(c)
    given = {name: torch.from_numpy(np.array(tensors[name])) for name in network.state_dict()}
    given["gap.weight"][:, : 4 * c.dimension] /= torch.from_numpy(_column_scales(c))
    if c.context:
        given["inner.weight"] /= c.dimension**0.5
    network.load_state_dict(given)
    return network


def _column_scales(c: SageConfig) -> FloatArray:
    """Return by how much the head's columns of a pair are scaled; those of the product twice."""
    scale = c.dimension**0.5
    return np.repeat(np.array([scale, scale, scale, scale**2], dtype=np.float32), c.dimension)


def sage_tensors(network: SageNetwork) -> dict[str, Any]:
    """Return the network's weights as the arrays that SageModel reads; they include the vectors' scale."""
    c = network.config
    tensors = {name: value.detach().cpu().numpy().copy() for name, value in network.state_dict().items()}
    tensors["gap.weight"][:, : 4 * c.dimension] *= _column_scales(c)
    if c.context:
        tensors["inner.weight"] *= c.dimension**0.5
    return tensors
