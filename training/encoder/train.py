"""Train the encoder's upper layers, on the files of `build.py`.

    python -m training.encoder.train STATE --packs PACKS --hours H [--batch-tokens N] [--leave-out KIND…]

A question finds the sentence in its context: its vector is compared with the vectors that the indexes make of
the sentences in the batch, alone and weighted with their passage, and with the passages' means. The others of
the same passages, of passages with like words and of other sources are the negatives.

STATE is a folder: `state.pt` has the network, the mean of its weights over the last steps, the optimizer, the
step and the time used. The command takes it up and goes on; the rate falls to 0 at the end of --hours. It
runs on a GPU if there is one. `trained.pt` has the mean alone, 11 MB: `export.py` makes the encoder of it.
"""

import time
from argparse import ArgumentParser
from collections import defaultdict
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from training.encoder.batches import SEED, Batch, Pool
from training.encoder.network import SentenceNetwork
from training.kinds import KINDS

PASSAGE_TOKENS = 250
WHOLE = 0.15
"""Share of the batches in which passages are encoded as one text."""
ALPHA = 0.6
"""Weight of a sentence against its context, as in `SentenceContextIndex`."""
WEIGHTS = {"context": 0.5, "sentence": 0.25, "passage": 0.25}
SCALE = 20.0
"""Cosines are multiplied by it for the softmax."""
RATE, WARM_UP, MEAN = 1e-4, 30, 0.995
SAVE_EVERY = 20


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
    """Return the mean over questions of -log of the share of what is gold in the softmax.

    Half of it is for any of a question's gold ones; the other half is for each of them by itself, without the
    others beside it, because all of the evidence is to be found. apart: what is left out of the softmax.
    """
    logits = (SCALE * cosines).masked_fill(apart, -1e4)
    n_gold, any_gold = gold.sum(1).clamp(min=1), logits.masked_fill(~gold, -1e4).logsumexp(1)
    others = logits.masked_fill(gold, -1e4).logsumexp(1)
    each = (F.softplus(others[:, None] - logits) * gold).sum(1) / n_gold
    return (0.5 * F.softplus(others - any_gold) + 0.5 * each).mean()


class Trainer:
    """Network, the mean of its weights, optimizer, step and time used."""

    def __init__(self, start: Path | None, rate: float) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network = SentenceNetwork(start).to(self.device).train()
        self.rate = rate
        self.mean = {name: tensor.clone() for name, tensor in self.network.upper.state_dict().items()}
        decayed = [p for p in self.network.upper.parameters() if p.ndim == 2]
        plain = [p for p in self.network.upper.parameters() if p.ndim < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=rate
        )
        self.step, self.seconds = 0, 0.0

    def train(self, batch: Batch, fall: float, random: np.random.Generator) -> dict[str, float]:
        """Take a step; returns the parts of the loss. fall: of the rate, 1 at the beginning, 0 at the end."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * fall * min(1.0, (self.step + 1) / WARM_UP)
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

    def save(self, folder: Path) -> None:
        """Write what is needed to go on, and what `export.py` needs, which is small."""
        _write(folder / "state.pt", self.state())
        mean = {name: tensor.half().cpu() for name, tensor in self.mean.items()}
        _write(folder / "trained.pt", {"step": self.step, "mean": mean})

    def resume(self, state: dict[str, Any]) -> None:
        """Take up a state."""
        self.network.upper.load_state_dict(state["upper"])
        self.mean = {name: tensor.to(self.device) for name, tensor in state["mean"].items()}
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]


def _write(path: Path, state: dict[str, Any]) -> None:
    """Write a file; the former one stays if it fails."""
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
    parser.add_argument("--rate", type=float, default=RATE, help="learning rate at its highest (%(default)s)")
    parser.add_argument("--start", type=Path, help="folder of build.py, where MiniLM is not installed")
    parser.add_argument(
        "--leave-out",
        nargs="+",
        default=[],
        choices=list(KINDS),
        metavar="KIND",
        help="kinds of text not read",
    )
    options = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)
    options.state.mkdir(parents=True, exist_ok=True)
    path = options.state / "state.pt"
    trainer = Trainer(options.start, options.rate)
    if path.exists():
        trainer.resume(torch.load(path, map_location=trainer.device))
    left_out = {name for kind in options.leave_out for name in KINDS[kind]}
    pool = Pool(options.packs, left_out, trainer.step)
    random = np.random.default_rng((SEED, trainer.step))
    begun, before, seen = time.monotonic(), trainer.seconds, defaultdict(list)
    for batch in pool.batches(options.batch_tokens, random):
        share = trainer.seconds / (3600 * options.hours)
        if share >= 1:
            break
        for name, value in trainer.train(batch, 0.5 + 0.5 * cos(pi * share), random).items():
            seen[name].append(value)
        trainer.seconds = before + time.monotonic() - begun
        if trainer.step % SAVE_EVERY == 0:
            means = ", ".join(f"{name} {np.mean(values):.4f}" for name, values in seen.items())
            print(f"step {trainer.step}, {trainer.seconds / 60:.1f} minutes: {means}", flush=True)
            seen.clear()
            pool.look()
            trainer.save(options.state)
    trainer.save(options.state)


if __name__ == "__main__":
    main()
