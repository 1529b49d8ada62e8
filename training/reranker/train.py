"""Train the packaged reranker, calibrate it, and save it.

    PRECISE_DATA=DIR python benchmarks/reranking/train.py OUT [--vectors FILE] [--cache DIR]

Trains on the candidate lists of `lists.py`: the training splits, and half of the documents of four
development sets. A quarter of those documents is kept out of training, to calibrate with. How much
the retrieval's own order counts is learnt from networks that never saw the set they are tried on.
Takes about 20 CPU-minutes, most of them for retrieving; --vectors and --cache keep what can be kept
between runs.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from precise_rag.models.checkpoint import save_checkpoint
from precise_rag.rerank.features import FEATURES, features
from precise_rag.rerank.network import FeatureNetwork
from training.reranker.blending import fit_blend
from training.reranker.lists import (
    HALVED,
    KINDS,
    TRAINING,
    CandidateList,
    calibrates,
    candidate_lists,
    encoder,
    folders,
    may_train_on,
    read_set,
)
from training.reranker.rarity import rarity_table

SEED = 0
HIDDEN = 32
EPOCHS = 6
BATCH = 64
WIDTH = 50
DOCUMENTS = {"fairytaleqa": 90, "qmsum": 24}
QUESTIONS = dict.fromkeys(KINDS, 600)
"""Of each set at most, by kind of list."""

DENSE = ("dense", "dense_to_best", "dense_z", "core_to_best", "near_dense", "list_dense")
LEXICAL = ("bm25_log", "bm25_to_best", "bm25_passage_to_best")
RANK = ("prior", "reciprocal_rank")
HIDDEN_FROM = (
    (0.15, DENSE + LEXICAL + RANK),
    (0.10, DENSE + LEXICAL),
    (0.10, RANK),
    (0.05, ("core_to_best", "bm25_passage_to_best")),
)
"""Shares of the training lists in which features are hidden, so that foreign candidates are known too."""


class Lists:
    """Candidate lists of one set, or of several joined, as padded arrays.

    x (n, WIDTH, f), y and there (n, WIDTH), weight (n,).
    """

    def __init__(self, found: Sequence[CandidateList], table: np.ndarray) -> None:
        lists = [one for one in found if one.candidates]
        shape = (len(lists), WIDTH)
        self.x = np.full((*shape, len(FEATURES)), np.nan, dtype=np.float32)
        self.y = np.zeros(shape, dtype=np.float32)
        self.there = np.zeros(shape, dtype=bool)
        for row, one in enumerate(lists):
            n = len(one.candidates)
            self.x[row, :n] = features(one.question, one.candidates, table)
            self.y[row, :n] = one.relevant
            self.there[row, :n] = True
        self.weight = np.full(len(lists), max(len(lists), 1) ** -0.5, dtype=np.float32)

    @classmethod
    def joined(cls, several: "Sequence[Lists]") -> "Lists":
        """The lists of several sets; a set counts by the root of its size."""
        whole = cls.__new__(cls)
        for name in ("x", "y", "there", "weight"):
            setattr(whole, name, np.concatenate([getattr(lists, name) for lists in several]))
        whole.weight = whole.weight / whole.weight.mean()
        return whole

    def truth(self) -> list[np.ndarray]:
        """Which candidates of each list are relevant."""
        return [y[there] > 0 for y, there in zip(self.y, self.there, strict=True)]

    def without(self, names: Sequence[str]) -> "Lists":
        """The same lists with some features unknown."""
        whole = self.joined([self])
        whole.x[..., [FEATURES.index(name) for name in names]] = np.nan
        return whole

    def with_hidden(self, random: np.random.Generator) -> np.ndarray:
        """x with some features hidden in some lists."""
        x, drawn, low = self.x.copy(), random.random(len(self.x)), 0.0
        for share, names in HIDDEN_FROM:
            rows = np.flatnonzero((drawn >= low) & (drawn < low + share))
            x[np.ix_(rows, np.arange(WIDTH), [FEATURES.index(name) for name in names])] = np.nan
            low += share
        return x


class Network(nn.Module):
    """`FeatureNetwork` in torch."""

    def __init__(self, lists: Lists) -> None:
        super().__init__()
        rows = lists.x[lists.there]
        self.mean, self.deviation = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0) + 1e-3
        n_inputs = 2 * len(FEATURES)
        self.linear = nn.Linear(n_inputs, 1)
        self.layer1 = nn.Linear(n_inputs, HIDDEN)
        self.layer2 = nn.Linear(HIDDEN, HIDDEN)
        self.layer3 = nn.Linear(HIDDEN, 1, bias=False)

    def inputs(self, x: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(FeatureNetwork.inputs(x, self.mean, self.deviation))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        hidden = F.silu(self.layer2(F.silu(self.layer1(z))))
        return (self.linear(z) + self.layer3(hidden))[..., 0]

    def tensors(self) -> dict[str, np.ndarray]:
        found = {
            "linear": self.linear.weight[0],
            "bias": self.linear.bias,
            "weight1": self.layer1.weight,
            "bias1": self.layer1.bias,
            "weight2": self.layer2.weight,
            "bias2": self.layer2.bias,
            "weight3": self.layer3.weight[0],
        }
        plain = {name: tensor.detach().numpy() for name, tensor in found.items()}
        return {"mean": self.mean, "deviation": self.deviation, **plain}


def fit(lists: Lists) -> Network:
    """Listwise softmax for the order, and cross-entropy of each candidate for the level."""
    torch.manual_seed(SEED)
    random = np.random.default_rng(SEED)
    network = Network(lists)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-3)
    steps = EPOCHS * -(-len(lists.x) // BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    y, there, weight = (torch.from_numpy(a) for a in (lists.y, lists.there, lists.weight))
    for epoch in range(EPOCHS):
        z = network.inputs(lists.with_hidden(random))
        total = 0.0
        for rows in torch.randperm(len(z)).split(BATCH):
            logits, truth, real = network(z[rows]), y[rows], there[rows]
            chosen = F.log_softmax(logits.masked_fill(~real, -1e4), dim=1) * truth
            order = -chosen.sum(1) / truth.sum(1).clamp(min=1)
            level = (F.binary_cross_entropy_with_logits(logits, truth, reduction="none") * real).sum(1)
            loss = (weight[rows] * (order + level / 16)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch + 1}: loss {total / len(z):.4f}")
    return network


def columns(network: Network, lists: Lists) -> list[dict[str, np.ndarray]]:
    """What a blend sees of each list: the network's logits, and the retrieval's score and rank."""
    with torch.no_grad():
        logits = network(network.inputs(lists.x)).numpy()
    places = {name: np.nan_to_num(lists.x[..., FEATURES.index(name)]) for name in RANK}
    return [
        {"network": mine[real], **{name: values[row][real] for name, values in places.items()}}
        for row, (mine, real) in enumerate(zip(logits, lists.there, strict=True))
    ]


def blends(
    network: Network, fitting: dict[str, Lists], kept_out: dict[str, Lists]
) -> dict[str, dict[str, float]]:
    """The two lines that turn logits into probabilities.

    "ranked", with the retrieval's score and rank: on each set by a network that did not see the set.
    "plain", the network alone: by the network itself, retrieval scores hidden, on documents kept out.
    """
    seen, truth, weight = [], [], []
    for name in fitting:
        stranger = fit(Lists.joined([lists for other, lists in fitting.items() if other != name]))
        for lists in (fitting[name], kept_out[name]):
            seen += columns(stranger, lists)
            truth += lists.truth()
            weight += [1.0 / (len(fitting[name].x) + len(kept_out[name].x))] * len(lists.x)
    ranked = fit_blend(seen, truth, weight, order=0.0)
    unknown = Lists.joined(list(kept_out.values())).without(DENSE + LEXICAL + RANK)
    alone = [{"network": found["network"]} for found in columns(network, unknown)]
    return {"ranked": ranked, "plain": fit_blend(alone, unknown.truth(), list(unknown.weight), order=0.0)}


def found_lists(
    options: argparse.Namespace, n_questions: Mapping[str, int] = QUESTIONS
) -> Iterator[tuple[str, str, list[CandidateList]]]:
    """(set, kind, lists) of all that may be trained on."""
    encode = encoder(options.vectors)
    for name in [f"train/{name}" for name in TRAINING] + [f"dev/{name}" for name in HALVED]:
        split, _, stem = name.partition("/")
        dataset = read_set(name, options.data, DOCUMENTS.get(stem) if split == "train" else None)
        if split == "dev":
            allowed = tuple(q for q in dataset.questions if may_train_on(q.group))
            dataset = replace(dataset, questions=allowed)
        for kind in KINDS:
            sample = replace(dataset.sample(n_questions[kind], SEED), name=name)
            yield stem, kind, candidate_lists(sample, kind, encode, options.cache)
            print(f"{name}: {kind}")


def main() -> None:
    parser = folders(__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    fitting: dict[str, list[CandidateList]] = {}
    kept_out: dict[str, list[CandidateList]] = {}
    for name, _, lists in found_lists(options):
        for one in lists:
            (kept_out if calibrates(one.group) else fitting).setdefault(name, []).append(one)
    table = rarity_table(options.data)
    seen = {name: Lists(several, table) for name, several in fitting.items()}
    unseen = {name: Lists(several, table) for name, several in kept_out.items()}
    network = fit(Lists.joined(list(seen.values())))
    config = {
        "kind": "features",
        "features": list(FEATURES),
        "blend": blends(network, seen, unseen),
        "seed": SEED,
    }
    save_checkpoint(options.out, config, {**network.tensors(), "idf": table})
    print(f"{config['blend']}; saved in {options.out}")


if __name__ == "__main__":
    main()
