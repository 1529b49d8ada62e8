"""Train the network of the packaged reranker, and save it for `training.reranker.calibrate`.

    python -m training.reranker.train OUT --data DIR [--cache DIR]

The data are lists of `training/candidate_lists.py`: from the training splits, and from half of the
documents of four development sets. Weak lists, of questions made from training documents, weigh as much as
all of these together. The idf table counts the paragraphs of the training documents.
--cache keeps the lists between runs. The card is docs/models.md.
"""

from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.harness.datasets import HALVED, Dataset, may_train_on, read_lines
from precise_rag.checkpoints import save_checkpoint
from precise_rag.encoders import load_encoder
from precise_rag.rerank.features import FEATURES, features
from precise_rag.rerank.packaged import KNOWN, network_inputs
from precise_rag.stems import IDF_STEPS, read_words, slot
from training.candidate_lists import (
    KINDS,
    N_DOCUMENTS,
    CandidateList,
    candidate_lists,
    new_parser,
    read_set,
    with_documents,
)
from training.weak_questions import as_typed, asked_of, collections, documents_of, free_sources

SEED = 0
HIDDEN = 32
EPOCHS = 6
BATCH = 64
WIDTH = 50
"""Candidates of a padded list."""

SHORTER = (3, 5, 10, 20)
"""Half of the lists are cut to one of these lengths, as many retrievers return no more."""

QUESTIONS, WEAK_QUESTIONS = 600, 90
"""Questions of each human set, by kind of list, and of each collection of training documents, at most."""

ROUNDS = 3
"""Collections of each source, times its share. The first of each source is left to benchmarks."""

IDF_SIZE = 1 << 18
"""Entries of the idf table."""

IDF_LEAST = 4
"""Paragraphs of a language that a stem must be in; rarer stems share the greatest rarity."""

IDF_SMOOTH = 3000
"""Paragraphs added to those of each language, so that words of small languages are not too common."""

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


class PaddedLists(NamedTuple):
    """Candidate lists as padded arrays.

    x: (n, WIDTH, f) features. y: (n, WIDTH) 1 if relevant. there: (n, WIDTH) false at padding.
    weight: (n,) of each list in the loss.
    """

    x: np.ndarray
    y: np.ndarray
    there: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, found: Sequence[CandidateList], table: np.ndarray) -> "PaddedLists":
        """Read the lists of a set, whose weight is the root of their number. table: of idf."""
        lists = [one for one in found if one.candidates]
        shape = (len(lists), WIDTH)
        x = np.full((*shape, len(FEATURES)), np.nan, dtype=np.float32)
        y, there = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=bool)
        for row, one in enumerate(lists):
            n = len(one.candidates)
            x[row, :n] = features(one.question, one.candidates, table)
            y[row, :n] = one.relevant
            there[row, :n] = True
        return cls(x, y, there, np.full(len(lists), max(len(lists), 1) ** -0.5, dtype=np.float32))

    @classmethod
    def joined(cls, several: "Sequence[PaddedLists]") -> "PaddedLists":
        """Join lists; their weights add up to 1."""
        x, y, there, weight = (np.concatenate(parts) for parts in zip(*several, strict=True))
        return cls(x, y, there, weight / weight.sum())

    def with_hidden(self, random: np.random.Generator) -> np.ndarray:
        """Return x with some features hidden in some lists, at random."""
        x, drawn, low = self.x.copy(), random.random(len(self.x)), 0.0
        for share, names in HIDDEN_SHARES:
            rows = np.flatnonzero((drawn >= low) & (drawn < low + share))
            x[np.ix_(rows, np.arange(WIDTH), [FEATURES.index(name) for name in names])] = np.nan
            low += share
        return x


class Network(nn.Module):
    """`network_logits` in torch."""

    def __init__(self, lists: PaddedLists) -> None:
        super().__init__()
        rows = lists.x[lists.there]
        self.mean, self.deviation = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0) + 1e-3
        n_inputs = 2 * len(FEATURES)
        self.linear = nn.Linear(n_inputs, 1)
        self.layer1 = nn.Linear(n_inputs, HIDDEN)
        self.layer2 = nn.Linear(HIDDEN, HIDDEN)
        self.layer3 = nn.Linear(HIDDEN, 1, bias=False)

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
    drawn = np.random.default_rng(SEED).choice([*SHORTER, *[WIDTH] * len(SHORTER)], len(lists))
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
    y, there, weight = (torch.from_numpy(a) for a in (lists.y, lists.there, lists.weight * len(lists.weight)))
    for epoch in range(EPOCHS):
        x = network_inputs(lists.with_hidden(random), network.mean, network.deviation)
        z = torch.from_numpy(x)
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


def build_idf_table(folder: str) -> np.ndarray:
    """Count the table, see `precise_rag.stems`. folder: of the documents.

    A stem is as rare as in the language in which it is commonest, so that function words of a language
    with few documents are common too.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    paragraphs: Counter[str] = Counter()
    for source, path in free_sources(folder):
        for record in islice(read_lines(path), 0, None, 4 if source == "standardebooks" else 1):
            language = record.get("lang", "en")
            for section in record["sections"]:
                for paragraph in section["paragraphs"]:
                    counts[language].update(set(read_words(paragraph).stems))
                    paragraphs[language] += 1
    share = np.zeros(IDF_SIZE)
    for language, stems in counts.items():
        for stem, count in stems.items():
            if count >= IDF_LEAST:
                place = slot(stem, IDF_SIZE)
                share[place] = max(share[place], count / (paragraphs[language] + IDF_SMOOTH))
    rarity = -np.log(np.maximum(share, 1.5 / max(paragraphs.values())))
    return np.clip(np.round(rarity * IDF_STEPS), 0, 255).astype(np.uint8)


def human_lists(options: Namespace) -> Iterator[tuple[str, list[CandidateList]]]:
    """Yield (set, lists) of what may be trained on: whole training splits, half of the development sets."""
    encoder = load_encoder()
    for name in (*(f"train/{stem}" for stem in N_DOCUMENTS), *(f"dev/{stem}" for stem in HALVED)):
        split, _, stem = name.partition("/")
        dataset = read_set(name, options.data)
        if split == "train":
            dataset = with_documents(dataset, N_DOCUMENTS[stem])
        else:
            dataset = replace(dataset, questions=tuple(q for q in dataset.questions if may_train_on(q.group)))
        sample = replace(dataset.sample(QUESTIONS), name=name)
        for kind in KINDS:
            yield stem, candidate_lists(sample, kind, encoder, options.cache)


def weak_lists(options: Namespace) -> Iterator[tuple[str, list[CandidateList]]]:
    """Yield (source, lists) of collections of training documents."""
    encoder = load_encoder()
    for source, number, records in collections(options.data, ROUNDS):
        if not number:
            continue
        name = f"weak-{source}-{number:03d}"
        random = np.random.default_rng(crc32(name.encode()))
        asked = asked_of(records, WEAK_QUESTIONS, random)
        asked = [replace(one, text=as_typed(one.text, random)) for one in asked]
        dataset = Dataset(name, tuple(documents_of(records)), tuple(asked))
        for kind in KINDS:
            yield source, candidate_lists(dataset, kind, encoder, options.cache)


def padded(found: Iterable[tuple[str, list[CandidateList]]], table: np.ndarray) -> PaddedLists:
    """Read all lists, set by set. table: of idf."""
    sets: dict[str, list[CandidateList]] = defaultdict(list)
    for name, lists in found:
        sets[name] += lists
        print(f"{name}: {len(lists)} lists", flush=True)
    return PaddedLists.joined([PaddedLists.of(shortened(several), table) for several in sets.values()])


def main() -> None:
    options = new_parser("training.reranker.train", __doc__, has_cache=True).parse_args()
    table = build_idf_table(options.data)
    network = fit(PaddedLists.joined([padded(read(options), table) for read in (human_lists, weak_lists)]))
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
