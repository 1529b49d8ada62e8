"""Train the small cross-encoder.

    PRECISE_DATA=DIR python benchmarks/reranking/train_cross_encoder.py OUT [--vectors FILE] [--cache DIR]

Words and lower layers are MiniLM's and stay as they are; the upper layers, which read question and
candidate together, are trained on the lists that `train.py` may use and on weak questions
(`examples.py`). About an hour on one CPU thread that is fast at bfloat16, most of it for the training
itself; --vectors and --cache keep what can be kept between runs.
"""

import argparse
import pickle
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from blending import fit_blend
from cascade import Cascade
from cross_encoder import CrossEncoder, TransformerConfig, minilm_cross_encoder, minilm_tokenizer, padded
from lists import CandidateList, calibrates, encoder, folders
from questions import sloppy
from tokenizers import Tokenizer
from torch.nn import functional as F
from train import SEED, found_lists

from examples import KINDS, Example, from_lists, weak_examples
from precise_rag.checkpoint import save_checkpoint
from precise_rag.encoders.sentence_transformer import fast_precision

QUESTIONS = {"sentences": 2500, "passages": 600, "dense": 600, "bm25": 2500}
"""Of each set at most, by kind of list."""

WEAK_PER_SOURCE = 500
WEAK_SHARE = 0.45
LISTS = 7_000
QUESTION_TOKENS = 40
CANDIDATE_TOKENS = 144
BATCH_TOKENS = 4500
BLOCK = 256
"""Lists among which those of like length are put into one batch."""

RATE = 1e-4
HEAD_RATE = 5e-4
GATE_RATE = 3e-3
"""Learning rates of the layers, of the head, and of what lets the two texts see each other."""

CALIBRATION_LISTS = 60
"""Of each set and kind of list at most."""

LEVEL = 0.25
"""Weight of each pair's cross-entropy beside the listwise loss."""


class Tokens(NamedTuple):
    """An example as token ids."""

    question: list[int]
    candidates: list[list[int]]
    relevant: np.ndarray


def real_examples(
    options: argparse.Namespace, random: np.random.Generator
) -> tuple[dict[tuple[str, str], list[Example]], dict[str, list[CandidateList]]]:
    """Examples from real questions by set and kind of list; some lists of documents kept out, by set."""
    found: dict[tuple[str, str], list[Example]] = {}
    kept_out: dict[str, list[CandidateList]] = {}
    for name, kind, lists in found_lists(options, QUESTIONS):
        if name == options.without:
            continue
        out = [one for one in lists if calibrates(one.group) and one.candidates]
        kept_out.setdefault(name, []).extend(out[:CALIBRATION_LISTS])
        fitting = [one for one in lists if not calibrates(one.group)]
        asked = [one._replace(question=sloppy(one.question, random)) for one in fitting]
        found.setdefault((name, kind), []).extend(from_lists(asked, kind, name, random))
    return found, kept_out


def weak(options: argparse.Namespace, random: np.random.Generator) -> list[Example]:
    """The weak examples, kept in the cache."""
    path = options.cache and options.cache / f"weak-{WEAK_PER_SOURCE}.pickle"
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    found = list(weak_examples(options.data, WEAK_PER_SOURCE, encoder(None), random))
    if path:
        path.write_bytes(pickle.dumps(found))
    return found


def curriculum(
    real: dict[tuple[str, str], list[Example]], weak: Sequence[Example], random: np.random.Generator
) -> list[Example]:
    """LISTS examples in the order of training: weak ones more at the beginning, real ones more at the end.

    A set and kind counts by its size to the power 0.75.
    """
    shares = {key: KINDS[key[1]] * len(several) ** 0.75 for key, several in real.items()}
    wanted = LISTS * (1.0 - WEAK_SHARE) / sum(shares.values())
    placed: list[tuple[float, Example]] = []
    for key, several in real.items():
        rows = random.permutation(len(several))[: round(wanted * shares[key])]
        placed += [(random.random() ** 0.6, several[row]) for row in rows]
    rows = random.permutation(len(weak))[: LISTS - len(placed)]
    placed += [(0.85 * random.random(), weak[row]) for row in rows]
    return [example for _, example in sorted(placed, key=lambda pair: pair[0])]


def batches(
    examples: Sequence[Example], tokenizer: Tokenizer, random: np.random.Generator
) -> list[list[Tokens]]:
    """Batches of examples of like length, those of one block in random order."""

    def ids(texts: Sequence[str], limit: int) -> list[list[int]]:
        end = tokenizer.token_to_id("[SEP]")
        found = [e.ids for e in tokenizer.encode_batch(list(texts))]
        return [row if len(row) <= limit else [*row[: limit - 1], end] for row in found]

    tokens = [
        Tokens(ids([e.question], QUESTION_TOKENS)[0], ids(e.texts, CANDIDATE_TOKENS), e.relevant)
        for e in examples
    ]
    out = []
    for first in range(0, len(tokens), BLOCK):
        block = sorted(tokens[first : first + BLOCK], key=_longest)
        several: list[list[Tokens]] = [[]]
        for one in block:
            pairs = sum(len(t.candidates) for t in [*several[-1], one])
            if several[-1] and pairs * (_longest(one) + 14) > BATCH_TOKENS:
                several.append([])
            several[-1].append(one)
        out += [several[row] for row in random.permutation(len(several))]
    return out


def _longest(tokens: Tokens) -> int:
    return max(map(len, tokens.candidates))


def fit(network: CrossEncoder, several: Sequence[Sequence[Tokens]], saved: Path | None) -> None:
    """Train the upper layers and the head; `saved`: a file for the weights after every hundred steps."""
    for part in (network.words, network.places, network.norm, network.apart):
        part.requires_grad_(False)
    groups = [
        {"params": list(network.together.parameters()), "lr": RATE},
        {"params": list(network.head.parameters()), "lr": HEAD_RATE},
        {"params": [network.sides, network.across], "lr": GATE_RATE},
    ]
    trained = [p for group in groups for p in group["params"]]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        [group["lr"] for group in groups],
        total_steps=len(several),
        pct_start=0.05,
        anneal_strategy="linear",
        cycle_momentum=False,
    )
    started, total = time.monotonic(), 0.0
    for step, batch in enumerate(several, start=1):
        loss = batch_loss(network, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
        if step % 50 == 0:
            minutes = (time.monotonic() - started) / 60
            print(f"step {step} of {len(several)}: loss {total / 50:.4f}, {minutes:.1f} minutes", flush=True)
            total = 0.0
        if saved and step % 100 == 0:
            torch.save(network.state_dict(), saved)


def batch_loss(network: CrossEncoder, batch: Sequence[Tokens]) -> torch.Tensor:
    """Listwise softmax over each example's candidates, and cross-entropy of each pair.

    Where several are relevant, half of the loss asks for all of them and half for any one.
    """
    sizes = [len(tokens.candidates) for tokens in batch]
    of = torch.arange(len(batch)).repeat_interleave(torch.tensor(sizes))
    asked, is_asked = padded([tokens.question for tokens in batch])
    shown, is_shown = padded([row for tokens in batch for row in tokens.candidates])
    with fast_precision("cpu"):
        with torch.no_grad():
            question, candidate = network.read(asked, is_asked), network.read(shown, is_shown)
        logits = network.score(question[of], is_asked[of], candidate, is_shown).float()
    truth = torch.from_numpy(np.concatenate([tokens.relevant for tokens in batch])).float()
    order = torch.zeros(())
    for mine, true in zip(logits.split(sizes), truth.split(sizes), strict=True):
        chosen = mine.log_softmax(0)[true > 0]
        order = order - 0.5 * chosen.logsumexp(0) - 0.5 * chosen.mean()
    return order / len(batch) + LEVEL * F.binary_cross_entropy_with_logits(logits, truth)


def trained_tensors(network: CrossEncoder) -> dict[str, np.ndarray]:
    """What differs from MiniLM, as numpy arrays."""
    ours = ("together.", "sides", "across", "head.")
    return {k: v.numpy() for k, v in network.state_dict().items() if k.startswith(ours)}


def calibrated(folder: Path, kept_out: dict[str, list[CandidateList]]) -> dict[str, float]:
    """The line that makes probabilities, fitted to lists of documents kept out of training."""
    cascade = Cascade(folder)
    seen, truth, weight = [], [], []
    for several in kept_out.values():
        for one in several:
            rows, columns, _ = cascade.columns(one.question, one.candidates)
            seen.append(columns)
            truth.append(one.relevant[rows])
            weight.append(1.0 / len(several))
    return fit_blend(seen, truth, weight, order=0.0)


def main() -> None:
    parser = folders(__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--without", help="a set that is left out, to test on it")
    options = parser.parse_args()
    random = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)
    real, kept_out = real_examples(options, random)
    examples = curriculum(real, weak(options, random), random)
    several = batches(examples, minilm_tokenizer(), random)
    n_weak = sum(e.source.startswith("weak/") for e in examples)
    pairs = sum(len(e.texts) for e in examples)
    print(f"{len(examples)} lists, {n_weak} of them weak, {pairs} pairs, {len(several)} steps", flush=True)
    config = TransformerConfig()
    network = minilm_cross_encoder(config)
    fit(network, several, options.cache and options.cache / "cross-encoder.pt")
    settings = {"kind": "cross-encoder", "n_layers": config.n_layers, "n_apart": config.n_apart, "seed": SEED}
    save_checkpoint(options.out, settings, trained_tensors(network))
    blend = calibrated(options.out, kept_out)
    save_checkpoint(options.out, {**settings, "blend": blend}, trained_tensors(network))
    print(f"{blend}; saved in {options.out}")


if __name__ == "__main__":
    main()
