"""Train the small cross-encoder of the cascade, on lists of `build.py`.

    python -m training.reranker_cascade.train STATE --lists LISTS [--minutes N]

The layers that read both texts begin as those in the package. The embeddings and lower layers are MiniLM's
and stay as they are. They are read in int8, as they will run, so that the upper layers learn from the states
that they will get. The learning rate falls to 0 within the minutes. New files of lists join with the next
round. STATE is a folder; `network.pt` there has the trained tensors, for `calibrate.py`.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint, packaged_model
from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.encoders.onnx import OnnxEncoder
from precise_rag.encoders.sentence_transformer import fast_precision
from precise_rag.encoders.token_ids import TokenIds, read_ids
from precise_rag.rerank.candidate_texts import with_headings
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_network import (
    PairNetwork,
    Pairs,
    TransformerConfig,
    copy_layers,
    minilm,
    padded,
)
from precise_rag.rerank.pairs import PieceTokens, tokens_of_pieces
from precise_rag.types import Candidate
from training.reranker_cascade.build import SEED, read
from training.reranker_cascade.examples import Example

ROUND = 1_024
"""Examples that are drawn, and put into batches, at a time."""

SHARES = {"sentences": 0.8, "bm25": 0.12, "passages": 0.05, "dense": 0.03}
"""Shares of the kinds of lists among the examples of a set; the others' are three to five times as long."""

WEAK_SHARE = 0.15
ALONE = 0.25
"""Share of the examples whose candidates are read without the text around them."""
TITLED, NEEDED = 0.2, 0.5
"""Share of the examples whose candidates are all read with the titles of their documents; and of those where
they are read as the cascade reads them, with the titles that the question needs."""

QUESTION_TOKENS = 40
BATCH_TOKENS = 3_000
"""Tokens of a batch, those of a question once for each of its candidates."""

RATES = {"layers": 1e-4, "head": 3e-4, "gates": 5e-4}
"""Learning rates at the start; the gates are the parameters for attention across the texts."""

WIDER, FEWEST = 1.4, 6
"""Candidates are scored together with those that are up to so many times as long, so many of them or more."""

LEVEL = 0.25
"""Weight of each pair's cross-entropy beside the listwise loss."""

WARM_UP = 60
DROPOUT = 0.1
SAVE_EVERY = 50
"""Steps between two savings."""

_TRAINED = ("together.", "sides", "across", "head.")


class Tokens(NamedTuple):
    """An example as token ids."""

    question: list[int]
    candidates: PieceTokens
    relevant: np.ndarray


class Pool:
    """The examples in a folder of lists.

    folder: its files are read.
    """

    def __init__(self, folder: Path) -> None:
        self.files = sorted([*folder.glob("human-*.pickle"), *folder.glob("weak-*.pickle")])
        self._weak: list[Example] = []
        self._human: dict[str, dict[str, list[Example]]] = {}
        for one in (one for path in self.files for one in read(path)):
            if one.source.startswith("weak/"):
                self._weak.append(one)
            else:
                self._human.setdefault(one.source, {}).setdefault(one.kind, []).append(one)

    def drawn(self, random: np.random.Generator) -> list[Example]:
        """Draw the examples of a round. The weight of a question set is the square root of its size."""
        weights = {name: sum(map(len, kinds.values())) ** 0.5 for name, kinds in self._human.items()}
        out: list[Example] = []
        for name, kinds in self._human.items():
            wanted = ROUND * (1 - WEAK_SHARE) * weights[name] / sum(weights.values())
            of_kinds = sum(SHARES[kind] for kind in kinds)
            for kind, examples in kinds.items():
                out += _take(examples, wanted * SHARES[kind] / of_kinds, random)
        out += _take(self._weak, ROUND * WEAK_SHARE, random)
        return [as_read(one, random) for one in out]


def _take(examples: Sequence[Example], wanted: float, random: np.random.Generator) -> list[Example]:
    how_many = int(wanted + random.random())
    return [examples[row] for row in random.permutation(len(examples))[:how_many]]


def as_read(one: Example, random: np.random.Generator) -> Example:
    """Return the example as it is read: with all titles, with those that the question needs, or without.

    Of some, the text around the candidates is left out: what others retrieved comes without.
    """
    drawn = random.random()
    pieces = list(one.pieces)
    if drawn >= TITLED + NEEDED:
        titles = [""] * len(pieces)
    elif drawn >= TITLED:
        titles = _needed(one)
    else:
        titles = [f"{piece.above}: " if piece.above else "" for piece in pieces]
    pieces = [piece._replace(above=title) for piece, title in zip(pieces, titles, strict=True)]
    if random.random() < ALONE:
        pieces = [piece._replace(before="", after="") for piece in pieces]
    return one._replace(pieces=tuple(pieces))


def _needed(one: Example) -> list[str]:
    """The titles that the question needs, as the cascade puts them before the texts."""
    candidates = [
        Candidate("", 0, len(piece.text), piece.text, 0.0, "rank", metadata={"title": piece.above})
        for piece in one.pieces
    ]
    read = with_headings(one.question, candidates, packaged_reranker().idf_table)
    return [r.text.removesuffix(c.text) for r, c in zip(read, candidates, strict=True)]


def batches(
    examples: Sequence[Example], tokenizer: Tokenizer, random: np.random.Generator
) -> list[list[Tokens]]:
    """Put examples of similar length into batches, which are in random order."""
    several: list[list[Tokens]] = [[]]
    size = 0
    for one in sorted((_tokens(e, tokenizer) for e in examples), key=_longest):
        cost = sum(len(one.question) + len(row) for row in one.candidates.rows)
        if several[-1] and size + cost > BATCH_TOKENS:
            several.append([])
            size = 0
        several[-1].append(one)
        size += cost
    return [several[row] for row in random.permutation(len(several))]


def _tokens(example: Example, tokenizer: Tokenizer) -> Tokens:
    question = read_ids(tokenizer, [example.question], 1).cut(QUESTION_TOKENS).ids.tolist()
    return Tokens(question, tokens_of_pieces(tokenizer, example.pieces), example.relevant)


def _longest(tokens: Tokens) -> int:
    return max(map(len, tokens.candidates.rows))


def endless(lists: Path, tokenizer: Tokenizer, random: np.random.Generator) -> Iterator[list[Tokens]]:
    """Yield the batches of one round after the other; new files join with the next round."""
    while True:
        pool = Pool(lists)
        print(f"{len(pool.files)} files", flush=True)
        yield from batches(pool.drawn(random), tokenizer, random)


def start_from_package(network: PairNetwork) -> Tokenizer:
    """Give a network the weights of the package; returns the tokenizer."""
    torch.manual_seed(0)
    encoder = minilm()
    copy_layers(network, encoder)
    tensors = dequantized(load_checkpoint(packaged_model("reranker-cascade"))[1])
    packaged = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    network.load_state_dict({**network.state_dict(), **packaged})
    for part in (network.words, network.places, network.norm, network.apart):
        part.requires_grad_(False)
    return encoder.tokenizer


def trained_tensors(network: PairNetwork) -> dict[str, torch.Tensor]:
    """Return the tensors that differ from MiniLM's."""
    return {name: tensor for name, tensor in network.state_dict().items() if name.startswith(_TRAINED)}


class LowerLayers:
    """The layers that read each text apart, in int8, and are not trained."""

    def __init__(self, config: TransformerConfig) -> None:
        self._config = config
        self._int8 = OnnxEncoder(packaged_encoder(MINILM)).lower_layers(config.n_apart, "int8")

    def states(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the (n, l, width) states of texts, which are token ids, and the mask, false at padding."""
        ids, mask = padded(rows)
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        tokens = TokenIds(np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]), offsets)
        states = torch.zeros(*ids.shape, self._config.width)
        states[mask] = torch.from_numpy(self._int8.states(tokens, self._config.n_apart))
        return states, mask


def pair_logits(network: PairNetwork, lower: LowerLayers, batch: Sequence[Tokens]) -> torch.Tensor:
    """Return the logits of all candidates in a batch; those of similar length are read together."""
    of = torch.arange(len(batch)).repeat_interleave(torch.tensor([len(t.candidates.rows) for t in batch]))
    rows = [row for tokens in batch for row in tokens.candidates.rows]
    beside = [row for tokens in batch for row in tokens.candidates.around]
    questions, in_question = lower.states([tokens.question for tokens in batch])
    together: list[list[int]] = []
    for place in sorted(range(len(rows)), key=lambda row: len(rows[row])):
        shortest = len(rows[together[-1][0]]) if together else 0
        if not together or (len(together[-1]) >= FEWEST and len(rows[place]) > WIDER * shortest):
            together.append([])
        together[-1].append(place)
    found = []
    for places in together:
        candidates, in_candidate = lower.states([rows[place] for place in places])
        around = torch.zeros_like(in_candidate)
        for number, place in enumerate(places):
            around[number, : len(beside[place])] = torch.from_numpy(beside[place])
        with fast_precision("cpu"):
            asked = of[places]
            pairs = Pairs(questions[asked], in_question[asked], candidates, in_candidate, around)
            logits = network.score(pairs)
        found.append(logits.float())
    return torch.cat(found)[torch.argsort(torch.tensor([place for places in together for place in places]))]


def batch_loss(network: PairNetwork, lower: LowerLayers, batch: Sequence[Tokens]) -> torch.Tensor:
    """Listwise softmax over each example's candidates, and cross-entropy of each pair.

    If several are relevant, half of the softmax loss is for all of them and half for any one; if none is,
    there is no softmax loss.
    """
    logits = pair_logits(network, lower, batch)
    sizes = [len(tokens.candidates.rows) for tokens in batch]
    truth = torch.from_numpy(np.concatenate([tokens.relevant for tokens in batch])).float()
    order = torch.zeros(())
    for mine, true in zip(logits.split(sizes), truth.split(sizes), strict=True):
        if not true.any():
            continue
        chosen = mine.log_softmax(0)[true > 0]
        order = order - 0.5 * chosen.logsumexp(0) - 0.5 * chosen.mean()
    return order / len(batch) + LEVEL * F.binary_cross_entropy_with_logits(logits, truth)


def train(
    network: PairNetwork, lower: LowerLayers, batches: Iterable[Sequence[Tokens]], options: Namespace
) -> None:
    """Train a network; `network.pt` in the folder has the trained tensors. batches: without end."""
    options.state.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)
    network.train()
    hooks = [
        part.register_forward_hook(_with_dropout)
        for layer in network.together
        for part in (layer.out, layer.down)
    ]
    parameters = {
        "layers": list(network.together.parameters()),
        "head": list(network.head.parameters()),
        "gates": [network.sides, network.across],
    }
    every = [p for several in parameters.values() for p in several]
    optimizer = torch.optim.AdamW(
        [{"params": several, "lr": RATES[name]} for name, several in parameters.items()],
        betas=(0.9, 0.98),
        weight_decay=0.01,
    )
    started, losses = time.time(), []
    for step, batch in enumerate(batches, 1):
        minutes = (time.time() - started) / 60
        left = 1 - minutes / options.minutes
        if left <= 0:
            break
        for group, rate in zip(optimizer.param_groups, RATES.values(), strict=True):
            group["lr"] = rate * left * min(1.0, step / WARM_UP)
        loss = batch_loss(network, lower, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(every, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % SAVE_EVERY == 0:
            cpu = time.process_time() / 60
            mean = np.mean(losses[-SAVE_EVERY:])
            print(f"step {step}, {minutes:.1f} min, {cpu:.1f} CPU-min: loss {mean:.4f}", flush=True)
            torch.save(trained_tensors(network), options.state / "network.pt")
    torch.save(trained_tensors(network), options.state / "network.pt")
    for hook in hooks:
        hook.remove()
    network.eval()
    print(f"done: {len(losses)} steps", flush=True)


def _with_dropout(_module: torch.nn.Module, _given: object, out: torch.Tensor) -> torch.Tensor:
    return F.dropout(out, DROPOUT)


def main() -> None:
    parser = ArgumentParser(prog="python -m training.reranker_cascade.train", description=__doc__)
    parser.add_argument("state", type=Path, metavar="STATE", help="folder that keeps the network")
    parser.add_argument("--lists", type=Path, required=True, help="folder of build.py")
    parser.add_argument("--minutes", type=float, default=60, help="of training (%(default)s)")
    options = parser.parse_args()
    network = PairNetwork(TransformerConfig())
    tokenizer = start_from_package(network)
    examples = endless(options.lists, tokenizer, np.random.default_rng(SEED))
    train(network, LowerLayers(network.config), examples, options)


if __name__ == "__main__":
    main()
