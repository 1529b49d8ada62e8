"""Train the encoder's upper layers, on the files of `build.py`.

    python -m training.encoder.train STATE --packs PACKS --hours H [--batch-tokens N] [--leave-out KIND…]

A question finds the sentence in its context: its vector is compared with the vectors that the indexes make of
the sentences in the batch, alone and weighted with their passage, and with the passages' means. The others of
the same passages, of passages with like words and of other sources are the negatives.

STATE is a folder: `state.pt` has the network, the mean of its weights over the last steps, the optimizer, the
step and the time used. The command takes it up and goes on; the rate falls to 0 at the end of --hours. It
runs on a GPU if there is one. `python -m training.encoder.export` writes the encoder.
"""

import time
import zlib
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import pairwise
from math import cos, pi
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from training.encoder.build import SETS
from training.encoder.network import SentenceNetwork
from training.encoder.pack import Pack

SEED = 0
SHARE = 0.6
"""The weight of a set is the number of its questions to this power."""
WEAK_SHARE = 0.12
N_NEAR, N_BESIDE = 2, 1
"""Passages with like words, and other passages of the same document, that come with a question."""
N_GOLD = 3
N_JOINING = 10
"""More questions about the same passages, at most."""
N_SENTENCES, SENTENCE_TOKENS = 9, 62
"""Sentences of a passage, and tokens of a sentence, that are read."""
PASSAGE_TOKENS = 250
TYPED = 0.4
"""Share of the questions that are read as somebody might type them."""
WHOLE = 0.15
"""Share of the batches in which passages are encoded as one text."""
ALPHA = 0.6
"""Weight of a sentence against its context, as in `SentenceContextIndex`."""
WEIGHTS = {"context": 0.5, "sentence": 0.25, "passage": 0.25}
SCALE = 20.0
"""Cosines are multiplied by it for the softmax."""
RATE, WARM_UP, MEAN = 1e-4, 30, 0.98
SAVE_EVERY = 20


class Batch(NamedTuple):
    """Questions and the passages that they are asked of.

    questions: n token lists. passages: p lists of sentences. gold: (m, 2) question and sentence (by its place
    among all). apart: (n, p) passages that a question says nothing about, because it is another document's.
    """

    questions: list[list[int]]
    passages: list[list[list[int]]]
    gold: np.ndarray
    apart: np.ndarray


class Source:
    """A pack that hands out questions with passages, in random order."""

    def __init__(self, name: str, pack: Pack, number: int) -> None:
        self.name, self.pack = name, pack
        self.n = pack.questions.count()
        self._random = np.random.default_rng((SEED, number))
        self.of_sentence = np.repeat(np.arange(len(pack.documents)), np.diff(pack.passages))
        begins = np.searchsorted(pack.evidence[:, 0], np.arange(self.n + 1))
        self._gold = [pack.evidence[low:high, 1] for low, high in pairwise(begins)]
        self._asked: dict[int, list[int]] = defaultdict(list)
        for row, gold in enumerate(self._gold):
            for passage in np.unique(self.of_sentence[gold]):
                self._asked[int(passage)].append(row)
        self._waiting: list[int] = []

    def drawn(self, add: "_Growing") -> None:
        """Add the next question, its passages and other questions about them to a batch."""
        if not self._waiting:
            self._waiting = self._random.permutation(self.n).tolist()
        row, random, pack = self._waiting.pop(), self._random, self.pack
        gold = random.permutation(np.unique(self.of_sentence[self._gold[row]]))[:N_GOLD]
        near = random.permutation(pack.near[row][pack.near[row] >= 0])[:N_NEAR]
        document = pack.documents[gold[0]]
        low, high = np.searchsorted(pack.documents, (document, document + 1))
        beside = random.integers(low, high, N_BESIDE)
        chosen = list(dict.fromkeys(map(int, [*gold, *near, *beside])))
        places = {p: add.passage(*self._window(p, row), self, p) for p in chosen}
        joining = {q for p in chosen for q in self._asked[p]} - {row}
        for question in [row, *random.permutation(sorted(joining))[:N_JOINING].tolist()]:
            typed = random.random() < TYPED
            add.question(
                (pack.typed if typed else pack.questions)[question], self._gold[question], self, places
            )

    def _window(self, passage: int, row: int) -> tuple[int, int]:
        """The sentences of a passage that are read: around the evidence of the question, if it is there."""
        low, high = int(self.pack.passages[passage]), int(self.pack.passages[passage + 1])
        if high - low <= N_SENTENCES:
            return low, high
        gold = self._gold[row]
        inside = gold[(gold >= low) & (gold < high)]
        middle = int(inside[0]) if len(inside) else low
        first = min(max(low, middle - int(self._random.integers(N_SENTENCES))), high - N_SENTENCES)
        return first, first + N_SENTENCES


class _Growing:
    """A batch in the making."""

    def __init__(self) -> None:
        self.questions: list[list[int]] = []
        self.passages: list[list[list[int]]] = []
        self._known: dict[tuple[str, int], int] = {}
        self._sentence: dict[tuple[str, int], int] = {}
        self._gold: list[tuple[int, int]] = []
        self._document: list[tuple[str, int, bool]] = []
        self._asks: list[tuple[str, int]] = []
        self.n_tokens = self._n_sentences = 0

    def passage(self, low: int, high: int, source: Source, passage: int) -> int:
        key = source.name, passage
        if key not in self._known:
            self._known[key] = len(self.passages)
            rows = [source.pack.sentences[s][:SENTENCE_TOKENS] for s in range(low, high)]
            for sentence in range(low, high):
                self._sentence[source.name, sentence] = self._n_sentences
                self._n_sentences += 1
            self.passages.append(rows)
            self.n_tokens += sum(len(row) + 2 for row in rows)
            self._document.append((source.name, int(source.pack.documents[passage]), source.pack.alone))
        return self._known[key]

    def question(self, ids: list[int], gold: np.ndarray, source: Source, places: dict[int, int]) -> None:
        here = [place for s in gold if (place := self._sentence.get((source.name, int(s)))) is not None]
        if not here:
            return
        self._gold += [(len(self.questions), place) for place in here]
        document = source.pack.documents[source.of_sentence[gold[0]]]
        self._asks.append((source.name, int(document)))
        self.questions.append(ids)
        self.n_tokens += len(ids) + 2

    def finished(self) -> Batch:
        apart = np.array(
            [
                [alone and name == source and number != document for name, number, alone in self._document]
                for source, document in self._asks
            ]
        )
        return Batch(self.questions, self.passages, np.array(self._gold), apart)


class Pool:
    """The packs of a folder; those that are written later join when it is looked at again.

    shares: (attribute) by name, the share of the groups of questions that a pack gives.
    left_out: names of packs that are not read. seed: of the order of the questions.
    """

    def __init__(self, folder: Path, left_out: Collection[str] = (), seed: int = 0) -> None:
        self._folder, self._left_out, self._seed = folder, set(left_out), seed
        self._sources: dict[str, Source] = {}
        self.look()

    def look(self) -> None:
        """Read the packs that are new."""
        for path in sorted(self._folder.glob("*.npz")):
            if path.stem not in self._left_out and path.stem not in self._sources:
                number = zlib.crc32(path.stem.encode()) + self._seed
                self._sources[path.stem] = Source(path.stem, Pack.load(path), number)
        self.shares = self._shared()

    def _shared(self) -> dict[str, float]:
        sizes = np.array([source.n for source in self._sources.values()], dtype=float)
        weak = np.array([name.startswith("weak-") for name in self._sources])
        weights = np.where(weak, sizes, sizes**SHARE)
        weights[~weak] /= weights[~weak].sum()
        weights[weak] *= WEAK_SHARE / max(weights[weak].sum(), 1.0)
        return dict(zip(self._sources, (weights / weights.sum()).tolist(), strict=True))

    def batches(self, n_tokens: int, random: np.random.Generator) -> Iterator[Batch]:
        """Yield batches of about so many tokens, without end."""
        while True:
            growing = _Growing()
            while growing.n_tokens < n_tokens:
                name = random.choice(list(self.shares), p=list(self.shares.values()))
                self._sources[name].drawn(growing)
            if len(growing.questions) > 1:
                yield growing.finished()


def loss_of(
    network: SentenceNetwork, batch: Batch, random: np.random.Generator
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of a batch, and its parts."""
    sizes = torch.tensor([len(passage) for passage in batch.passages])
    of = torch.arange(len(sizes)).repeat_interleave(sizes)
    sentences = [row for passage in batch.passages for row in passage]
    n = len(batch.questions)
    gold = torch.zeros(n, len(sentences), dtype=torch.bool)
    gold[tuple(batch.gold.T)] = True
    apart = torch.from_numpy(batch.apart)
    gold_passages = torch.zeros(n, len(sizes)).index_add_(1, of, gold.float()) > 0
    device = network.trunk.places.weight.device
    gold, apart, gold_passages, of = (x.to(device) for x in (gold, apart, gold_passages, of))
    whole = random.random() < WHOLE
    if whole:
        texts = [[t for row in passage for t in row][:PASSAGE_TOKENS] for passage in batch.passages]
        vectors = network.vectors([*batch.questions, *texts])
        parts = {"passage": contrast(vectors[:n] @ vectors[n:].T, gold_passages, apart)}
        weights = {"passage": 1.0}
    else:
        vectors = network.vectors([*batch.questions, *sentences])
        asked, core = vectors[:n], vectors[n:]
        lengths = torch.tensor([float(len(row) or 1) for row in sentences], device=device)[:, None]
        sums = torch.zeros(len(sizes), core.shape[1], device=device).index_add_(0, of, core * lengths)
        others = sums[of] - core * lengths
        weighted = ALPHA * core + (1 - ALPHA) * F.normalize(others, dim=-1, eps=1e-4)
        parts = {
            "context": contrast(asked @ F.normalize(weighted, dim=-1).T, gold, apart[:, of]),
            "sentence": contrast(asked @ core.T, gold, apart[:, of]),
            "passage": contrast(asked @ F.normalize(sums, dim=-1).T, gold_passages, apart),
        }
        weights = WEIGHTS
    loss = sum((weights[name] * part for name, part in parts.items()), torch.zeros((), device=device))
    return loss, {name: part.item() for name, part in parts.items()}


def contrast(cosines: Tensor, gold: Tensor, apart: Tensor) -> Tensor:
    """Return the mean over questions of -log(share of any of the gold ones in the softmax)."""
    logits = (SCALE * cosines).masked_fill(apart, -1e4)
    best = logits.masked_fill(~gold, -1e4).logsumexp(1)
    return (logits.logsumexp(1) - best).mean()


class Trainer:
    """Network, the mean of its weights, optimizer, step and time used."""

    def __init__(self) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network = SentenceNetwork().to(self.device).train()
        self.mean = {name: tensor.clone() for name, tensor in self.network.upper.state_dict().items()}
        decayed = [p for p in self.network.upper.parameters() if p.ndim == 2]
        plain = [p for p in self.network.upper.parameters() if p.ndim < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=RATE
        )
        self.step, self.seconds = 0, 0.0

    def train(self, batch: Batch, rate: float, random: np.random.Generator) -> dict[str, float]:
        """Take a step; returns the parts of the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss, parts = loss_of(self.network, batch, random)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.upper.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        keep = min(MEAN, self.step / (self.step + 10))
        with torch.no_grad():
            for name, tensor in self.network.upper.state_dict().items():
                self.mean[name].lerp_(tensor, 1.0 - keep)
        return parts

    def state(self) -> dict[str, Any]:
        """Return everything that is needed to go on."""
        return {
            "upper": self.network.upper.state_dict(),
            "mean": self.mean,
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Take up a state."""
        self.network.upper.load_state_dict(state["upper"])
        self.mean = {name: tensor.to(self.device) for name, tensor in state["mean"].items()}
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a state; the former one stays if it fails."""
    part = path.with_suffix(".part")
    torch.save(state, part)
    part.replace(path)


def main() -> None:
    parser = ArgumentParser(prog="python -m training.encoder.train", description=__doc__.splitlines()[0])
    parser.add_argument("state", type=Path, metavar="STATE")
    parser.add_argument("--packs", type=Path, required=True, help="folder of build.py")
    parser.add_argument(
        "--hours", type=float, default=1.0, help="in all, from the first step on (%(default)s)"
    )
    parser.add_argument("--batch-tokens", type=int, default=3_000, help="of a step (%(default)s)")
    parser.add_argument(
        "--leave-out",
        nargs="+",
        default=[],
        choices=list(SETS),
        metavar="KIND",
        help="kinds of text not read",
    )
    options = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)
    options.state.mkdir(parents=True, exist_ok=True)
    path = options.state / "state.pt"
    trainer = Trainer()
    if path.exists():
        trainer.resume(torch.load(path, map_location=trainer.device))
    left_out = {name for kind in options.leave_out for name in SETS[kind]}
    pool = Pool(options.packs, left_out, trainer.step)
    random = np.random.default_rng((SEED, trainer.step))
    begun, before, seen = time.monotonic(), trainer.seconds, defaultdict(list)
    for batch in pool.batches(options.batch_tokens, random):
        share = trainer.seconds / (3600 * options.hours)
        if share >= 1:
            break
        rate = RATE * min(1.0, (trainer.step + 1) / WARM_UP) * (0.5 + 0.5 * cos(pi * share))
        for name, value in trainer.train(batch, rate, random).items():
            seen[name].append(value)
        trainer.seconds = before + time.monotonic() - begun
        if trainer.step % SAVE_EVERY == 0:
            means = ", ".join(f"{name} {np.mean(values):.4f}" for name, values in seen.items())
            print(f"step {trainer.step}, {trainer.seconds / 60:.1f} minutes: {means}", flush=True)
            seen.clear()
            pool.look()
            save(path, trainer.state())
    save(path, trainer.state())


if __name__ == "__main__":
    main()
