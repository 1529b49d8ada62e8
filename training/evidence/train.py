"""Train the growth model and save it.

    python -m training.evidence.train OUT --data DIR [--cache DIR]

The questions are searched and reranked by the library as it is: train again after a change of the search or
of the default reranker. Both logistic regressions are fitted together,
by cross-entropy of each sentence near a found one; questions weigh the same within a set, and so do sets.
The card is docs/models.md.
"""

from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.harness.datasets import HALVED, Dataset, Evidence, may_train_on
from precise_rag.checkpoints import save_checkpoint
from precise_rag.encoders import load_encoder
from precise_rag.evidence.features import (
    FOUND_FEATURES,
    STEP_FEATURES,
    StretchFeatures,
    found_features,
    question_features,
    stretch_features,
)
from precise_rag.evidence.model import REACH, same_probabilities
from precise_rag.evidence.stretches import by_section
from precise_rag.index import HybridIndex
from precise_rag.rerank import CascadeReranker, rerank
from precise_rag.types import Candidate, Stretch
from training.candidate_lists import (
    N_CANDIDATES,
    N_DOCUMENTS,
    holds_evidence,
    is_kept,
    made_once,
    new_parser,
    read_set,
)

SEED = 0
STEPS = 30
PENALTY = 1e-4
"""Weight of the squared distance of the weights from those at the start."""

START = {"found": {"probability": 1.0}, "step": {"bias": -0.3, "same": 0.5}}
"""Weights at the start; the others are 0."""

EXTRA_RELEVANT = 5
"""A question's sentences weigh 1 / (relevant ones + this) each."""

N_TRAINING = 60
"""Questions of each of the halves of the development sets that may be trained on, at most."""

N_SPLIT = {"fairytaleqa": (12, 100), "qmsum": (5, 40)}
"""Documents and questions of the training splits, at most. The rerankers draw the first N_DOCUMENTS."""


class Asked(NamedTuple):
    """A question. found: its candidates, best first, by the cascade. stretches: the sections around them."""

    question: str
    evidence: tuple[Evidence, ...]
    found: list[Candidate]
    stretches: list[Stretch]


def training_sets(options: Namespace) -> Iterator[tuple[str, list[Asked]]]:
    """Yield the name of each set, such as "train/qmsum", with the questions that may be trained on."""
    for name in HALVED:
        dataset = read_set(f"dev/{name}", options.data)
        kept = tuple(q for q in dataset.questions if may_train_on(q.group))
        dataset = replace(dataset, questions=kept, name=f"train-half/{name}").sample(N_TRAINING)
        yield dataset.name, asked_of(dataset, options)
    for name, (n_documents, n_questions) in N_SPLIT.items():
        dataset = read_set(f"train/{name}", options.data)
        order = np.random.default_rng(0).permutation(len(dataset.documents))[N_DOCUMENTS[name] :]
        drawn = [dataset.documents[i].id for i in order]
        unseen = [i for i in drawn if is_kept(i, 4)][:n_documents]
        dataset = replace(dataset.restrict(unseen), name=f"train/{name}").sample(n_questions)
        yield dataset.name, asked_of(dataset, options)


def asked_of(dataset: Dataset, options: Namespace) -> list[Asked]:
    """Search and rerank for every question of a set; kept in the folder `options.cache`."""
    reranker = CascadeReranker()

    def make() -> list[Asked]:
        index = HybridIndex.build(dataset.documents, load_encoder())
        asked = []
        for question in dataset.questions:
            found = index.search(question.text, N_CANDIDATES, returns="sentence")
            ranked = rerank(question.text, [replace(c, metadata={}) for c in found], reranker, index)
            ids = {candidate.id for candidate in ranked}
            sections = (one for stretch in index.neighbours(ranked, REACH) for _, one in by_section(stretch))
            around = [one for one in sections if any(sentence.id in ids for sentence in one.sentences)]
            asked.append(Asked(question.text, question.evidence, ranked, around))
        return asked

    key = f"{dataset.name.replace('/', '-')}-{len(dataset.questions)}-{reranker.weights_sha256[:8]}"
    return made_once(options.cache, key, make)


class Rows(NamedTuple):
    """The sentences near the found ones of one question.

    read: features of each stretch. probability, relevant: (n,) of all stretches; NaN: not found.
    """

    read: list[StretchFeatures]
    probability: np.ndarray
    relevant: np.ndarray


def rows_of(asked: Asked) -> Rows:
    """Read a question."""
    found, question = {c.id: c.score for c in asked.found}, question_features(asked.question)
    read, probability, relevant = [], [], []
    for stretch in asked.stretches:
        p = np.array([found.get(s.id, np.nan) for s in stretch.sentences], dtype=np.float32)
        same = same_probabilities([s.text for s in stretch.sentences])
        read.append(stretch_features(question, stretch, p, same))
        probability.append(p)
        relevant.append(np.array([holds_evidence(s, asked.evidence) for s in stretch.sentences]))
    return Rows(read, np.concatenate(probability), np.concatenate(relevant))


class Batch:
    """Questions as tensors; the model of `EvidenceModel.grow`, on all stretches at once."""

    def __init__(self, questions: Sequence[Rows], weights: Sequence[float]) -> None:
        stretches = [read for rows in questions for read in rows.read]
        probability = np.concatenate([rows.probability for rows in questions])
        last = np.zeros((1, len(STEP_FEATURES)), dtype=np.float32)
        self.found = torch.from_numpy(found_features(probability))
        self.forward, self.backward = (
            torch.from_numpy(np.concatenate([part for read in stretches for part in (read[side], last)]))
            for side in (0, 1)
        )
        sizes = np.array([len(read.forward) + 1 for read in stretches])
        n = len(probability)
        place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        steps = np.concatenate([np.arange(-REACH, 0), np.arange(1, REACH + 1)])
        there = place[:, None] + steps
        self.inside = torch.from_numpy((there >= 0) & (there < np.repeat(sizes, sizes)[:, None]))
        self.sources = torch.from_numpy(np.clip(np.arange(n)[:, None] + steps, 0, n - 1))
        self.before = torch.from_numpy(steps < 0)
        self.is_found = torch.from_numpy(~np.isnan(probability))
        relevant = np.concatenate([rows.relevant for rows in questions], dtype=np.float32)
        self.relevant = torch.from_numpy(relevant)
        each = [
            np.full(len(rows.relevant), share / (rows.relevant.sum() + EXTRA_RELEVANT))
            for rows, share in zip(questions, weights, strict=True)
        ]
        weight = np.concatenate(each)
        self.weight = torch.from_numpy((weight / weight.sum()).astype(np.float32))

    def probabilities(self, found: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        alone = torch.sigmoid(self.found @ found) * self.is_found
        forward, backward = (
            F.pad(F.logsigmoid(side @ step).double().cumsum(0), (1, 0))[:-1]
            for side in (self.forward, self.backward)
        )
        path = torch.where(
            self.before, forward[:, None] - forward[self.sources], backward[self.sources] - backward[:, None]
        )
        reached = alone[self.sources] * torch.where(self.inside, path, -30.0).float().exp()
        return 1.0 - (1.0 - alone) * (1.0 - reached.max(dim=1).values)


def fit(by_kind: Mapping[str, list[Rows]]) -> dict[str, np.ndarray]:
    """Fit both regressions; returns their weights, "found" and "step"."""
    questions = [rows for several in by_kind.values() for rows in several]
    batch = Batch(questions, [1 / len(several) for several in by_kind.values() for _ in several])
    features = {"found": FOUND_FEATURES, "step": STEP_FEATURES}
    starts = [torch.tensor([START[one].get(key, 0.0) for key in keys]) for one, keys in features.items()]
    weights = [start.clone().requires_grad_() for start in starts]
    optimizer = torch.optim.LBFGS(weights, max_iter=STEPS, line_search_fn="strong_wolfe")
    reached = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        p = batch.probabilities(*weights)
        each = F.binary_cross_entropy(p.clamp(1e-6, 1.0 - 1e-6), batch.relevant, reduction="none")
        moved = sum(((w - start) ** 2).sum() for w, start in zip(weights, starts, strict=True))
        loss = (batch.weight * each).sum() + PENALTY * moved
        loss.backward()
        reached.append(loss.item())
        return loss

    optimizer.step(closure)
    print(f"loss {reached[-1]:.4f} after {len(reached)} evaluations", flush=True)
    return {name: w.detach().numpy() for name, w in zip(features, weights, strict=True)}


def main() -> None:
    torch.manual_seed(SEED)
    options = new_parser("training.evidence.train", __doc__, has_cache=True).parse_args()
    by_kind: dict[str, list[Rows]] = defaultdict(list)
    for name, asked in training_sets(options):
        by_kind[name.split("/")[1]] += [rows_of(one) for one in asked if one.found]
        print(name, len(asked), flush=True)
    config = {
        "kind": "evidence",
        "found_features": list(FOUND_FEATURES),
        "step_features": list(STEP_FEATURES),
        "questions": {name: len(rows) for name, rows in by_kind.items()},
        "seed": SEED,
    }
    save_checkpoint(options.out, config, fit(by_kind))
    print(f"saved in {options.out}")


if __name__ == "__main__":
    main()
