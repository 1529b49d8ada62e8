"""Train the small cross-encoder of the cascade.

    python -m training.reranker_cascade.train OUT --data DIR [--vectors FILE] [--cache DIR]

The embeddings and lower layers are MiniLM's and stay as they are. The upper layers, which read query and
candidate together, are trained on the lists that the packaged reranker may be trained on, and on weak
questions (`examples.py`). The weights of both judgements are fitted on two sets, with networks of both
kinds that were trained without these sets. --vectors and --cache keep the slow parts between runs. The
card is docs/models/reranker-cascade.md.
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
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_network import (
    PairNetwork,
    TransformerConfig,
    minilm,
    minilm_pair_network,
    padded,
    token_ids,
)
from training.candidate_lists import CandidateList, cached_encoder, calibrates, new_parser
from training.reranker.idf_table import build_idf_table
from training.reranker.logistic_regression import fit_logistic_regression
from training.reranker.train import SEED, PaddedLists, regression_columns, training_lists
from training.reranker.train import fit as fit_features
from training.reranker_cascade.examples import KINDS, Example, from_lists, weak_examples
from training.reranker_cascade.questions import as_typed

QUESTIONS = {"sentences": 2500, "passages": 600, "dense": 600, "bm25": 2500}
"""Questions of each set, at most, by kind of list."""

WEAK_PER_SOURCE = 500
WEAK_SHARE = 0.45
EXAMPLES = 7_000
QUESTION_TOKENS = 40
CANDIDATE_TOKENS = 144
BATCH_TOKENS = 4500
BLOCK = 256
"""Examples that are sorted by length before they are put into batches."""

RATE = 1e-4
HEAD_RATE = 5e-4
GATE_RATE = 3e-3
"""Learning rates of the layers, of the head, and of the parameters for attention across the texts."""

LEFT_OUT = ("squad", "covidqa")
"""Sets on which the weights of both judgements are fitted, with networks trained without them."""

REGRESSION_LISTS = 60
"""Lists for the regression of each set and kind, at most, of documents kept out of training."""

LEVEL = 0.25
"""Weight of each pair's cross-entropy beside the listwise loss."""


class Tokens(NamedTuple):
    """An example as token ids."""

    question: list[int]
    candidates: list[list[int]]
    relevant: np.ndarray


class RealExamples(NamedTuple):
    """The real training data.

    fitting: lists for training, by set. examples: made from them, by set and kind. kept_out: lists of
    documents kept out of training, by set and kind.
    """

    fitting: dict[str, list[CandidateList]]
    examples: dict[tuple[str, str], list[Example]]
    kept_out: dict[tuple[str, str], list[CandidateList]]

    def without(self, names: Sequence[str]) -> "RealExamples":
        """Return the same without some sets."""
        return RealExamples(
            {name: several for name, several in self.fitting.items() if name not in names},
            {key: several for key, several in self.examples.items() if key[0] not in names},
            {key: several for key, several in self.kept_out.items() if key[0] not in names},
        )


def real_examples(options: argparse.Namespace, random: np.random.Generator) -> RealExamples:
    """Retrieve all lists that may be trained on."""
    found = RealExamples({}, {}, {})
    for name, kind, lists in training_lists(options, QUESTIONS):
        out = [one for one in lists if calibrates(one.group) and one.candidates]
        found.kept_out.setdefault((name, kind), []).extend(out)
        fitting = [one for one in lists if not calibrates(one.group)]
        found.fitting.setdefault(name, []).extend(fitting)
        asked = [one._replace(question=as_typed(one.question, random)) for one in fitting]
        found.examples.setdefault((name, kind), []).extend(from_lists(asked, kind, name, random))
    return found


def weak(options: argparse.Namespace) -> list[Example]:
    """Make the weak examples, or read them from the cache."""
    path = options.cache and options.cache / f"weak-{WEAK_PER_SOURCE}.pickle"
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    random = np.random.default_rng(SEED)
    found = list(weak_examples(options.data, WEAK_PER_SOURCE, cached_encoder(None), random))
    if path:
        path.write_bytes(pickle.dumps(found))
    return found


def curriculum(
    real: dict[tuple[str, str], list[Example]], weak: Sequence[Example], random: np.random.Generator
) -> list[Example]:
    """Choose EXAMPLES examples and order them: more weak ones first, more real ones last.

    The weight of a set and kind is its size to the power 0.75.
    """
    shares = {key: KINDS[key[1]] * len(several) ** 0.75 for key, several in real.items()}
    wanted = EXAMPLES * (1.0 - WEAK_SHARE) / sum(shares.values())
    placed: list[tuple[float, Example]] = []
    for key, several in real.items():
        rows = random.permutation(len(several))[: round(wanted * shares[key])]
        placed += [(random.random() ** 0.6, several[row]) for row in rows]
    rows = random.permutation(len(weak))[: EXAMPLES - len(placed)]
    placed += [(0.85 * random.random(), weak[row]) for row in rows]
    return [example for _, example in sorted(placed, key=lambda pair: pair[0])]


def batches(
    examples: Sequence[Example], tokenizer: Tokenizer, random: np.random.Generator
) -> list[list[Tokens]]:
    """Put examples of similar length into batches; the batches of a block are in random order."""
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
    """Train a network on the examples in their order, or read the one of that name from the cache."""
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

    If several are relevant, half of the softmax loss is for all of them and half for any one.
    """
    sizes = [len(tokens.candidates) for tokens in batch]
    of = torch.arange(len(batch)).repeat_interleave(torch.tensor(sizes))
    questions, in_question = padded([tokens.question for tokens in batch])
    candidates, in_candidate = padded([row for tokens in batch for row in tokens.candidates])
    with fast_precision("cpu"):
        with torch.no_grad():
            question_states = network.encode(questions, in_question)
            candidate_states = network.encode(candidates, in_candidate)
        logits = network.score(question_states[of], in_question[of], candidate_states, in_candidate).float()
    truth = torch.from_numpy(np.concatenate([tokens.relevant for tokens in batch])).float()
    order = torch.zeros(())
    for mine, true in zip(logits.split(sizes), truth.split(sizes), strict=True):
        chosen = mine.log_softmax(0)[true > 0]
        order = order - 0.5 * chosen.logsumexp(0) - 0.5 * chosen.mean()
    return order / len(batch) + LEVEL * F.binary_cross_entropy_with_logits(logits, truth)


def trained_tensors(network: PairNetwork) -> dict[str, np.ndarray]:
    """Return the tensors that differ from MiniLM's, as numpy arrays."""
    ours = ("together.", "sides", "across", "head.")
    return {k: v.numpy() for k, v in network.state_dict().items() if k.startswith(ours)}


def save(network: PairNetwork, folder: Path, weights: dict[str, float]) -> None:
    """Write the trained layers, their matrices as int8, and the weights of the regression."""
    tensors = trained_tensors(network)
    matrices = [name for name in tensors if name.startswith("together.") and tensors[name].ndim == 2]
    config = {
        "kind": "cascade",
        "n_layers": network.config.n_layers,
        "n_apart": network.config.n_apart,
        "packaged_sha256": packaged_reranker().weights_sha256,
        "blend": weights,
        "seed": SEED,
    }
    save_checkpoint(folder, config, quantized(tensors, matrices))


def fit_judgements(
    without_sets: CascadeReranker, found: RealExamples, folder: str | None
) -> dict[str, float]:
    """Fit the regression over both judgements, with networks that were trained without LEFT_OUT.

    without_sets: the cascade with such a cross-encoder. The proportion of the judgements is fitted on
    LEFT_OUT; level and spread of the probabilities on the documents kept out of all sets.
    """
    table = build_idf_table(folder)
    known = found.without(LEFT_OUT).fitting
    features = fit_features(PaddedLists.joined([PaddedLists(lists, table) for lists in known.values()]))
    packaged = LogisticRegression(load_checkpoint(packaged_model("reranker"))[0]["blend"]["ranked"])
    names, seen, truth, weight = [], [], [], []
    for (name, _), lists in found.kept_out.items():
        some = lists[:REGRESSION_LISTS]
        for one, by_features in zip(
            some, regression_columns(features, PaddedLists(some, table)), strict=True
        ):
            rows, both, _ = without_sets.shortlist(one.question, one.candidates)
            names.append(name)
            seen.append({**both, "packaged": log_odds(packaged(by_features)[rows])})
            truth.append(one.relevant[rows])
            weight.append(1.0 / len(some))
    rows_left_out = [row for row, name in enumerate(names) if name in LEFT_OUT]
    proportion = fit_logistic_regression(
        *([of[row] for row in rows_left_out] for of in (seen, truth, weight))
    )
    regression = LogisticRegression(proportion)
    odds = [{"odds": log_odds(regression(columns))} for columns in seen]
    level = fit_logistic_regression(odds, truth, weight)
    scaled = {name: level["odds"] * value for name, value in proportion.items()}
    return {**scaled, "offset": scaled["offset"] + level["offset"]}


def main() -> None:
    options = new_parser("training.reranker_cascade.train", __doc__).parse_args()
    random = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)
    found, weak_ones = real_examples(options, random), weak(options)
    network = trained(curriculum(found.examples, weak_ones, random), random, "cross-encoder", options.cache)
    random = np.random.default_rng(SEED + 1)
    examples = curriculum(found.without(LEFT_OUT).examples, weak_ones, random)
    without_sets = trained(examples, random, "cross-encoder-without-sets", options.cache)
    save(without_sets, options.out, {"reads": 1.0})
    weights = fit_judgements(CascadeReranker(options.out), found, options.data)
    save(network, options.out, weights)
    print(f"{weights}; saved in {options.out}")


if __name__ == "__main__":
    main()
