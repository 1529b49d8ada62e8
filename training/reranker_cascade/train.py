"""Train the small cross-encoder of the cascade, on lists of `build.py`.

    python -m training.reranker_cascade.train STATE --lists LISTS [--steps N] [--cool N] [--leave-out SET…]

The embeddings and lower layers are MiniLM's and stay as they are. The upper layers, which read query and
candidate together, are trained further, from those in the package (`--from-minilm`: from MiniLM's).

STATE is a folder: `state.pt` has the network, the optimizer, the step and the place in the data. The
command takes it up and goes on, so training can be stopped at any time and has no planned end. --cool N
trains a copy N steps further with a rate that falls to 0, and saves it as `cooled.pt` for `calibrate.py`.
"""

import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.encoders.sentence_transformer import fast_precision
from precise_rag.models.packaged import packaged_model
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_network import (
    PairNetwork,
    TransformerConfig,
    minilm,
    minilm_pair_network,
    padded,
    token_ids,
)
from precise_rag.rerank.text_above import with_headings
from precise_rag.types import Candidate
from training.human_questions import SETS
from training.reranker_cascade.build import SEED, read
from training.reranker_cascade.examples import Example
from training.reranker_cascade.monitor import monitored, on

ROUND = 1_024
"""Examples that are drawn, and put into batches, at a time."""

SHARES = {"sentences": 0.66, "bm25": 0.2, "passages": 0.09, "dense": 0.05}
"""Shares of the kinds of lists among the examples of a set."""

WEAK_SHARE = 0.25
TITLED, NEEDED = 0.2, 0.5
"""Share of the examples whose candidates are all read with the titles of their documents; and of those where
they are read as the cascade reads them, with the titles that the question needs."""

QUESTION_TOKENS = 40
CANDIDATE_TOKENS = 220
BATCH_TOKENS = 3_000
BLOCK = 256
"""Examples that are sorted by length before they are put into batches."""

RATES = {"layers": 4e-5, "head": 1e-4, "gates": 5e-4}
"""Learning rates of the layers, of the head, and of the parameters for attention across the texts."""

WARM_UP = 60
SAVE_EVERY, WATCH_EVERY = 50, 1_000
"""Steps between two states, and between two looks at documents kept out."""

LEVEL = 0.25
"""Weight of each pair's cross-entropy beside the listwise loss."""


class Tokens(NamedTuple):
    """An example as token ids."""

    question: list[int]
    candidates: list[list[int]]
    relevant: np.ndarray


class Pool:
    """The examples in a folder of lists.

    files: of the folder; default: those that are there now. without: question sets that are left out.
    """

    def __init__(self, folder: Path, files: Sequence[str] | None = None, without: Sequence[str] = ()) -> None:
        there = sorted(p.name for p in folder.glob("*.pickle") if p.name.startswith(("human-", "weak-")))
        self.files = list(files or there)
        self._weak: list[Example] = []
        self._human: dict[str, dict[str, list[Example]]] = {}
        for one in (one for name in self.files for one in read(folder / name)):
            if one.source.startswith("weak/"):
                self._weak.append(one)
            elif one.source not in without:
                self._human.setdefault(one.source, {}).setdefault(one.kind, []).append(one)

    def drawn(self, number: int) -> list[Example]:
        """Draw the examples of a round. The weight of a question set is the square root of its size."""
        random = np.random.default_rng((SEED, number))
        weights = {name: sum(map(len, kinds.values())) ** 0.5 for name, kinds in self._human.items()}
        out: list[Example] = []
        for name, kinds in self._human.items():
            wanted = ROUND * (1 - WEAK_SHARE) * weights[name] / sum(weights.values())
            of_kinds = sum(SHARES[kind] for kind in kinds)
            for kind, examples in kinds.items():
                out += _take(examples, wanted * SHARES[kind] / of_kinds, random)
        out += _take(self._weak, ROUND * WEAK_SHARE, random)
        return [maybe_titled(out[row], random) for row in random.permutation(len(out))]


def _take(examples: Sequence[Example], wanted: float, random: np.random.Generator) -> list[Example]:
    how_many = int(wanted + random.random())
    return [examples[row] for row in random.permutation(len(examples))[:how_many]]


def maybe_titled(one: Example, random: np.random.Generator) -> Example:
    """Return the example as it is read: with all titles, with those that the question needs, or without."""
    drawn = random.random()
    pairs = list(zip(one.titles, one.texts, strict=True))
    if drawn < TITLED:
        return one._replace(texts=tuple(f"{title}: {text}" if title else text for title, text in pairs))
    if drawn >= TITLED + NEEDED:
        return one
    candidates = [
        Candidate("", 0, len(text), text, 0.0, "rank", metadata={"title": title}) for title, text in pairs
    ]
    read_so = with_headings(one.question, candidates, packaged_reranker().idf_table)
    return one._replace(texts=tuple(candidate.text for candidate in read_so))


def batches(examples: Sequence[Example], tokenizer: Tokenizer, number: int) -> list[list[Tokens]]:
    """Put examples of similar length into batches; the batches of a block are in random order."""
    random = np.random.default_rng((SEED, number, 1))
    out = []
    for first in range(0, len(examples), BLOCK):
        block = sorted((_tokens(e, tokenizer) for e in examples[first : first + BLOCK]), key=_longest)
        several: list[list[Tokens]] = [[]]
        for one in block:
            pairs = sum(len(t.candidates) for t in [*several[-1], one])
            if several[-1] and pairs * (_longest(one) + 14) > BATCH_TOKENS:
                several.append([])
            several[-1].append(one)
        out += [several[row] for row in random.permutation(len(several))]
    return out


def _tokens(example: Example, tokenizer: Tokenizer) -> Tokens:
    question = token_ids(tokenizer, [example.question], QUESTION_TOKENS)[0]
    return Tokens(question, token_ids(tokenizer, example.texts, CANDIDATE_TOKENS), example.relevant)


def _longest(tokens: Tokens) -> int:
    return max(map(len, tokens.candidates))


class Trainer:
    """The network in training, and its place in the data.

    Attributes: network; step: steps so far; number: of the round; place: batches of the round so far;
    files: of the round's pool, None before the first round.
    """

    def __init__(self, *, from_minilm: bool = False, device: str = "cpu") -> None:
        encoder = minilm()
        self.tokenizer = encoder.tokenizer
        self.network = minilm_pair_network(TransformerConfig(), encoder)
        if not from_minilm:
            _, tensors = load_checkpoint(packaged_model("reranker-cascade"))
            self._load({k: torch.from_numpy(v) for k, v in dequantized(tensors).items()})
        net = self.network.to(device)
        for part in (net.words, net.places, net.norm, net.apart):
            part.requires_grad_(False)
        groups = {"layers": net.together.parameters(), "head": net.head.parameters()}
        named = {**groups, "gates": (net.sides, net.across)}
        self._rates = [RATES[name] for name in named]
        self.optimizer = torch.optim.AdamW(
            [{"params": list(several), "lr": RATES[name]} for name, several in named.items()],
            betas=(0.9, 0.98),
            weight_decay=0.01,
        )
        self.step = self.number = self.place = 0
        self.files: list[str] | None = None

    def _load(self, tensors: dict[str, torch.Tensor]) -> None:
        self.network.load_state_dict({**self.network.state_dict(), **tensors})

    def state(self) -> dict[str, Any]:
        """Return all that is needed to go on."""
        return {
            "network": trained_tensors(self.network),
            "optimizer": self.optimizer.state_dict(),
            **{name: getattr(self, name) for name in ("step", "number", "place", "files")},
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._load(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in ("step", "number", "place", "files"):
            setattr(self, name, state[name])

    def steps(self, lists: Path, without: Sequence[str] = ()) -> Iterator[list[Tokens]]:
        """Yield batches without end, from the place in the data on; new files join with the next round.

        without: question sets that are left out.
        """
        while True:
            pool = Pool(lists, self.files if self.place else None, without)
            self.files = pool.files
            several = batches(pool.drawn(self.number), self.tokenizer, self.number)
            print(f"round {self.number}: {len(self.files)} files, {len(several)} batches", flush=True)
            while self.place < len(several):
                self.place += 1
                yield several[self.place - 1]
            self.number, self.place = self.number + 1, 0

    def train(self, batch: Sequence[Tokens], factor: float) -> float:
        """Take one step and return the loss; factor: of the learning rates."""
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor
        loss = batch_loss(self.network, batch)
        self.optimizer.zero_grad()
        loss.backward()
        trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        self.optimizer.step()
        self.step += 1
        return loss.item()


def batch_loss(network: PairNetwork, batch: Sequence[Tokens]) -> torch.Tensor:
    """Listwise softmax over each example's candidates, and cross-entropy of each pair.

    If several are relevant, half of the softmax loss is for all of them and half for any one; if none is,
    there is no softmax loss.
    """
    device = network.head.weight.device
    sizes = [len(tokens.candidates) for tokens in batch]
    of = torch.arange(len(batch)).repeat_interleave(torch.tensor(sizes)).to(device)
    questions, in_question = on(device, padded([tokens.question for tokens in batch]))
    candidates, in_candidate = on(device, padded([row for tokens in batch for row in tokens.candidates]))
    with fast_precision(device.type):
        with torch.no_grad():
            question_states = network.encode(questions, in_question)
            candidate_states = network.encode(candidates, in_candidate)
        logits = network.score(question_states[of], in_question[of], candidate_states, in_candidate).float()
    truth = torch.from_numpy(np.concatenate([tokens.relevant for tokens in batch])).float().to(device)
    order = torch.zeros((), device=device)
    for mine, true in zip(logits.split(sizes), truth.split(sizes), strict=True):
        if not true.any():
            continue
        chosen = mine.log_softmax(0)[true > 0]
        order = order - 0.5 * chosen.logsumexp(0) - 0.5 * chosen.mean()
    return order / len(batch) + LEVEL * F.binary_cross_entropy_with_logits(logits, truth)


def trained_tensors(network: PairNetwork) -> dict[str, torch.Tensor]:
    """Return the tensors that differ from MiniLM's."""
    ours = ("together.", "sides", "across", "head.")
    return {name: tensor for name, tensor in network.state_dict().items() if name.startswith(ours)}


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a state; the former one stays if it fails."""
    part = path.with_suffix(".part")
    torch.save(state, part)
    part.replace(path)


def main() -> None:
    parser = ArgumentParser(prog="python -m training.reranker_cascade.train", description=__doc__)
    parser.add_argument("state", type=Path, metavar="STATE", help="folder that keeps the state")
    parser.add_argument("--lists", type=Path, required=True, help="folder of build.py")
    parser.add_argument("--steps", type=int, default=100_000, help="steps in all, from the first on")
    parser.add_argument("--cool", type=int, metavar="N", help="train a copy for N steps with a falling rate")
    parser.add_argument("--from-minilm", action="store_true", help="begin with MiniLM's layers")
    parser.add_argument("--device", default="cpu", help="where the network runs, such as cuda (%(default)s)")
    parser.add_argument(
        "--leave-out", nargs="*", default=[], choices=SETS, metavar="SET", help="such as train/nq"
    )
    options = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)
    options.state.mkdir(parents=True, exist_ok=True)
    path = options.state / "state.pt"
    trainer = Trainer(from_minilm=options.from_minilm, device=options.device)
    if path.exists():
        trainer.resume(torch.load(path, map_location="cpu"))
    first = trainer.step
    last = first + options.cool if options.cool else options.steps
    started, losses = time.process_time(), []
    for batch in trainer.steps(options.lists, options.leave_out):
        if trainer.step >= last:
            break
        fall = (last - trainer.step) / options.cool if options.cool else 1.0
        losses.append(trainer.train(batch, fall * min(1.0, (trainer.step + 1) / WARM_UP)))
        if trainer.step % SAVE_EVERY == 0:
            minutes = (time.process_time() - started) / 60
            mean = np.mean(losses[-SAVE_EVERY:])
            print(f"step {trainer.step}: loss {mean:.4f}, {minutes:.1f} CPU-minutes", flush=True)
            if not options.cool:
                save(path, trainer.state())
        if trainer.step % WATCH_EVERY == 0 and not options.cool:
            print(monitored(trainer.network, trainer.tokenizer, options.lists), flush=True)
    save(options.state / "cooled.pt" if options.cool else path, trainer.state())
    print(monitored(trainer.network, trainer.tokenizer, options.lists), flush=True)


if __name__ == "__main__":
    main()
