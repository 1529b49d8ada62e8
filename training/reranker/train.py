"""Train the network of the packaged reranker, and save it for `training.reranker.calibrate`.

    python -m training.reranker.train OUT --data DIR [--vectors FILE] [--cache DIR]

The data are lists of `training/candidate_lists.py`: from the training splits, and from half of the
documents of four development sets. Weak lists, of questions made from training documents, weigh as much as
all of these together.
--vectors and --cache keep the slow parts between runs. The card is docs/models.md.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.harness.datasets import HALVED
from precise_rag.checkpoints.saved import save_checkpoint
from precise_rag.rerank.features import FEATURES, features
from precise_rag.rerank.packaged import KNOWN, FeatureNetwork
from training.candidate_lists import (
    KINDS,
    TRAINING,
    CandidateList,
    new_parser,
    trainable_lists,
)
from training.reranker.idf_table import build_idf_table
from training.reranker.weak import weak_lists

SEED = 0
HIDDEN = 32
EPOCHS = 6
BATCH = 64
WIDTH = 50
"""Candidates of a padded list."""

SHORTER = (3, 5, 10, 20)
"""Half of the lists are cut to one of these lengths, as many retrievers return no more."""

QUESTIONS = dict.fromkeys(KINDS, 600)
"""Questions of each set, at most, by kind of list."""

DENSE = ("dense", "core", "near_dense", "dense_to_own", "core_to_own", "dense_over_usual", "core_over_usual")
DENSE += ("usual_dense",)
LEXICAL_PASSAGE = ("bm25_passage_share", "bm25_passage_to_own", "bm25_passage_over_usual")
LEXICAL = ("bm25_share", "bm25_to_own", "bm25_over_usual", *LEXICAL_PASSAGE)
CORE = ("core", "core_to_own", "core_over_usual")
HIDDEN_SHARES = (
    (0.20, DENSE + LEXICAL),
    (0.08, DENSE),
    (0.08, LEXICAL),
    (0.06, CORE + LEXICAL_PASSAGE),
    (0.06, CORE + LEXICAL),
)
"""Shares of the lists in which features are hidden, to learn candidates of other retrievers."""


class PaddedLists:
    """Candidate lists as padded arrays.

    x: (n, WIDTH, f) features. y: (n, WIDTH) 1 if relevant. there: (n, WIDTH) false at padding.
    weight: (n,) of each list in the loss.
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
    def joined(cls, several: "Sequence[PaddedLists]") -> "PaddedLists":
        """Join the lists of several sets; the weight of a set is the root of its size."""
        whole = cls.__new__(cls)
        for name in ("x", "y", "there", "weight"):
            setattr(whole, name, np.concatenate([getattr(lists, name) for lists in several]))
        whole.weight = whole.weight / whole.weight.mean()
        return whole

    def beside(self, weak: "PaddedLists") -> "PaddedLists":
        """Join these lists with weak ones, which weigh as much as all of these together."""
        whole = self.joined([self, weak])
        parts = self.weight / self.weight.sum(), weak.weight / weak.weight.sum()
        whole.weight = np.concatenate(parts)
        whole.weight /= whole.weight.mean()
        return whole

    def with_hidden(self, random: np.random.Generator) -> np.ndarray:
        """Return x with some features hidden in some lists, at random."""
        x, drawn, low = self.x.copy(), random.random(len(self.x)), 0.0
        for share, names in HIDDEN_SHARES:
            rows = np.flatnonzero((drawn >= low) & (drawn < low + share))
            x[np.ix_(rows, np.arange(WIDTH), [FEATURES.index(name) for name in names])] = np.nan
            low += share
        return x


class Network(nn.Module):
    """`FeatureNetwork` in torch."""

    def __init__(self, lists: PaddedLists) -> None:
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


def shortened(lists: Sequence[CandidateList]) -> list[CandidateList]:
    """Cut half of the lists, at random."""
    random = np.random.default_rng(SEED)
    lengths = [WIDTH, *(n for n in SHORTER)]
    drawn = random.choice(lengths, len(lists), p=[0.5, *[0.5 / len(SHORTER)] * len(SHORTER)])
    return [
        one._replace(candidates=one.candidates[:n], relevant=one.relevant[:n])
        for one, n in zip(lists, drawn.tolist(), strict=True)
    ]


def fit(lists: PaddedLists) -> Network:
    """Train a network by listwise softmax, for the order, and cross-entropy, for the probabilities."""
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


def main() -> None:
    options = new_parser("training.reranker.train", __doc__).parse_args()
    human: dict[str, list[CandidateList]] = {}
    sets = [f"train/{name}" for name in TRAINING] + [f"dev/{name}" for name in HALVED]
    for name, kind, lists in trainable_lists(sets, QUESTIONS, options):
        human.setdefault(name.partition("/")[2], []).extend(lists)
        print(f"{name}: {kind}")
    made: dict[str, list[CandidateList]] = {}
    for source, lists in weak_lists(options):
        made.setdefault(source, []).extend(lists)
    table = build_idf_table(options.data)
    read, weak = (
        PaddedLists.joined([PaddedLists(shortened(several), table) for several in lists.values()])
        for lists in (human, made)
    )
    network = fit(read.beside(weak))
    config = {
        "kind": "features",
        "features": list(FEATURES),
        "blend": {name: {"network": 1.0} for name in KNOWN},
        "seed": SEED,
    }
    save_checkpoint(options.out, config, {**network.tensors(), "idf": table})
    print(f"saved in {options.out}")


if __name__ == "__main__":
    main()
