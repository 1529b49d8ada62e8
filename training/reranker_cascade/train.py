"""Train the small cross-encoder of the cascade.

    PRECISE_DATA=DIR python benchmarks/reranking/train_cross_encoder.py OUT [--vectors FILE] [--cache DIR]

Words and lower layers are MiniLM's and stay as they are; the upper layers, which read question and
candidate together, are trained on the lists that `train.py` may use and on weak questions
(`examples.py`). What its judgement counts beside the packaged reranker's is learnt on two sets, by
networks of both kinds that never saw them. About 40 minutes on one CPU thread that is fast at
bfloat16, twice 18 of them for the two trainings; --vectors and --cache keep what can be kept.
"""

import argparse
import pickle
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from precise_rag.encoders.sentence_transformer import fast_precision
from precise_rag.models.checkpoint import load_checkpoint, quantized, save_checkpoint
from precise_rag.models.packaged import packaged_model
from precise_rag.rerank.blend import Blend, log_odds
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_network import (
    PairNetwork,
    TransformerConfig,
    minilm,
    minilm_pair_network,
    padded,
    token_ids,
)
from training.reranker.blending import fit_blend
from training.reranker.lists import CandidateList, calibrates, encoder, folders
from training.reranker.rarity import rarity_table
from training.reranker.train import SEED, Lists, columns, found_lists
from training.reranker.train import fit as fit_features
from training.reranker_cascade.examples import KINDS, Example, from_lists, weak_examples
from training.reranker_cascade.questions import sloppy

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

STRANGE = ("squad", "covidqa")
"""Sets on which the blend is fitted, by networks trained without them."""

BLEND_LISTS = 60
"""Of each of these sets and each kind of list at most, of documents kept out of training."""

LEVEL = 0.25
"""Weight of each pair's cross-entropy beside the listwise loss."""


class Tokens(NamedTuple):
    """An example as token ids."""

    question: list[int]
    candidates: list[list[int]]
    relevant: np.ndarray


class Found(NamedTuple):
    """Lists for training by set, examples made of them by set and kind, lists kept out by the same."""

    fitting: dict[str, list[CandidateList]]
    examples: dict[tuple[str, str], list[Example]]
    kept_out: dict[tuple[str, str], list[CandidateList]]

    def without(self, names: Sequence[str]) -> "Found":
        """The same without some sets."""
        return Found(
            {name: several for name, several in self.fitting.items() if name not in names},
            {key: several for key, several in self.examples.items() if key[0] not in names},
            {key: several for key, several in self.kept_out.items() if key[0] not in names},
        )


def real_examples(options: argparse.Namespace, random: np.random.Generator) -> Found:
    """What may be trained on."""
    found = Found({}, {}, {})
    for name, kind, lists in found_lists(options, QUESTIONS):
        out = [one for one in lists if calibrates(one.group) and one.candidates]
        found.kept_out.setdefault((name, kind), []).extend(out)
        fitting = [one for one in lists if not calibrates(one.group)]
        found.fitting.setdefault(name, []).extend(fitting)
        asked = [one._replace(question=sloppy(one.question, random)) for one in fitting]
        found.examples.setdefault((name, kind), []).extend(from_lists(asked, kind, name, random))
    return found


def weak(options: argparse.Namespace) -> list[Example]:
    """The weak examples, kept in the cache."""
    path = options.cache and options.cache / f"weak-{WEAK_PER_SOURCE}.pickle"
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    random = np.random.default_rng(SEED)
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
    tokens = [
        Tokens(
            token_ids(tokenizer, [e.question], QUESTION_TOKENS)[0],
            token_ids(tokenizer, e.texts, CANDIDATE_TOKENS),
            e.relevant,
        )
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


def trained(
    examples: Sequence[Example], random: np.random.Generator, name: str, cache: Path | None
) -> PairNetwork:
    """A network trained on the examples in their order, or the one of that name in the cache."""
    encoder = minilm()
    network = minilm_pair_network(TransformerConfig(), encoder)
    path = cache and cache / f"{name}.pt"
    if path and path.exists():
        network.load_state_dict(torch.load(path))
        return network
    several = batches(examples, encoder.tokenizer, random)
    n_weak = sum(e.source.startswith("weak/") for e in examples)
    pairs = sum(len(e.texts) for e in examples)
    print(f"{len(examples)} lists, {n_weak} of them weak, {pairs} pairs, {len(several)} steps", flush=True)
    fit(network, several)
    if path:
        torch.save(network.state_dict(), path)
    return network


def fit(network: PairNetwork, several: Sequence[Sequence[Tokens]]) -> None:
    """Train the upper layers and the head."""
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


def batch_loss(network: PairNetwork, batch: Sequence[Tokens]) -> torch.Tensor:
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


def trained_tensors(network: PairNetwork) -> dict[str, np.ndarray]:
    """What differs from MiniLM, as numpy arrays."""
    ours = ("together.", "sides", "across", "head.")
    return {k: v.numpy() for k, v in network.state_dict().items() if k.startswith(ours)}


def save(network: PairNetwork, folder: Path, blend: dict[str, float]) -> None:
    """Write the trained layers, their matrices as int8."""
    tensors = trained_tensors(network)
    matrices = [name for name in tensors if name.startswith("together.") and tensors[name].ndim == 2]
    config = {
        "kind": "cascade",
        "n_layers": network.config.n_layers,
        "n_apart": network.config.n_apart,
        "packaged_sha256": packaged_reranker().weights_sha256,
        "blend": blend,
        "seed": SEED,
    }
    save_checkpoint(folder, config, quantized(tensors, matrices))


def fit_cascade(stranger: CascadeReranker, found: Found, folder: str | None) -> dict[str, float]:
    """The line that makes probabilities, fitted by networks that never saw the sets STRANGE.

    How much each of the two judgements counts is learnt on those sets; the level and the spread of the
    probabilities on documents kept out of all sets, so that they suit known kinds of collections, too.
    """
    table = rarity_table(folder)
    known = found.without(STRANGE).fitting
    features = fit_features(Lists.joined([Lists(lists, table) for lists in known.values()]))
    packaged = Blend(load_checkpoint(packaged_model("reranker"))[0]["blend"]["ranked"])
    names, seen, truth, weight = [], [], [], []
    for (name, _), lists in found.kept_out.items():
        some = lists[:BLEND_LISTS]
        for one, by_features in zip(some, columns(features, Lists(some, table)), strict=True):
            rows, both, _ = stranger.read(one.question, one.candidates)
            names.append(name)
            seen.append({**both, "packaged": log_odds(packaged(by_features)[rows])})
            truth.append(one.relevant[rows])
            weight.append(1.0 / len(some))
    strange = [row for row, name in enumerate(names) if name in STRANGE]
    order = fit_blend(*([of[row] for row in strange] for of in (seen, truth, weight)), order=0.0)
    lines = [{"line": log_odds(Blend(order)(of))} for of in seen]
    level = fit_blend(lines, truth, weight, order=0.0)
    scaled = {name: level["line"] * value for name, value in order.items()}
    return {**scaled, "offset": scaled["offset"] + level["offset"]}


def main() -> None:
    parser = folders(__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    random = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)
    found, weak_ones = real_examples(options, random), weak(options)
    network = trained(curriculum(found.examples, weak_ones, random), random, "cross-encoder", options.cache)
    random = np.random.default_rng(SEED + 1)
    others = curriculum(found.without(STRANGE).examples, weak_ones, random)
    stranger = trained(others, random, "cross-encoder-stranger", options.cache)
    save(stranger, options.out, {"reads": 1.0})
    blend = fit_cascade(CascadeReranker(options.out), found, options.data)
    save(network, options.out, blend)
    print(f"{blend}; saved in {options.out}")


if __name__ == "__main__":
    main()
