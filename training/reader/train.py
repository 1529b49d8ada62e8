"""Train the reader, which finds where in a text the answer to a question begins and ends.

    python -m training.reader.train STATE --data DIR [--minutes N]

It is the cascade's cross-encoder with another head. The embeddings and lower layers are MiniLM's and stay
as they are, in int8, as they will run; the upper layers begin as those of the packaged cascade and are
trained on questions with short answers, some of them asked of windows that do not answer them. The learning
rate falls to 0 within the minutes. STATE is a folder; `network.pt` there has the trained tensors.
"""

import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.encoders.bert import BertNetwork
from precise_rag.encoders.load import minilm_encoder
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.models.packaged import packaged_model
from precise_rag.rerank.pair_network import SpanNetwork, copy_layers, minilm, padded
from precise_rag.rerank.pairs import CANDIDATE_TOKENS, TransformerConfig
from training.reader.examples import Window, Windows
from training.reader.questions import trained_paragraphs

SEED = 0
QUESTION_TOKENS = 40
BATCH_TOKENS = 3_200
BLOCK = 128
"""Windows that are sorted by length before they are put into batches."""

RATES = {"layers": 3e-4, "head": 1e-3, "gates": 1e-3}
"""Learning rates at the start."""
WARM_UP = 60
DROPOUT = 0.1
SAVE_EVERY = 50


class Tokens(NamedTuple):
    """A window as token ids, with its questions. starts, ends: tokens where an answer begins and ends."""

    text: list[int]
    questions: list[list[int]]
    starts: list[list[int]]
    ends: list[list[int]]

    @property
    def cost(self) -> int:
        """Tokens that are read together."""
        return len(self.questions) * (len(self.text) + max(map(len, self.questions)))


def tokens_of(window: Window, tokenizer: Tokenizer) -> Tokens:
    """Tokenize a window; questions whose answer is cut off have none."""
    encoded = tokenizer.encode(window.text)
    ids, offsets = encoded.ids, encoded.offsets
    if len(ids) > CANDIDATE_TOKENS:
        ids = [*ids[: CANDIDATE_TOKENS - 1], ids[-1]]
    begins = {start: place for place, (start, end) in enumerate(offsets[: len(ids) - 1]) if end > start}
    finishes = {end: place for place, (start, end) in enumerate(offsets[: len(ids) - 1]) if end > start}
    questions, starts, ends = [], [], []
    for question, spans in window.asked:
        pairs = [
            (begins[s], finishes[e])
            for s, e in (_stripped(window.text, *span) for span in spans)
            if s in begins and e in finishes
        ]
        if spans and not pairs:
            continue
        row = tokenizer.encode(question).ids
        questions.append(row if len(row) <= QUESTION_TOKENS else [*row[: QUESTION_TOKENS - 1], row[-1]])
        starts.append([a for a, _ in pairs] or [0])
        ends.append([b for _, b in pairs] or [0])
    return Tokens(ids, questions, starts, ends)


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def batches(
    windows: Iterator[Window], tokenizer: Tokenizer, random: np.random.Generator
) -> Iterator[list[Tokens]]:
    """Yield batches of windows of similar length, in random order within each block."""
    block: list[Tokens] = []
    for window in windows:
        if (one := tokens_of(window, tokenizer)).questions:
            block.append(one)
        if len(block) == BLOCK:
            yield from _of_block(block, random)
            block = []
    yield from _of_block(block, random)


def _of_block(block: list[Tokens], random: np.random.Generator) -> Iterator[list[Tokens]]:
    several: list[list[Tokens]] = [[]]
    for one in sorted(block, key=lambda t: len(t.text)):
        if several[-1] and sum(t.cost for t in several[-1]) + one.cost > BATCH_TOKENS:
            several.append([])
        several[-1].append(one)
    yield from (several[row] for row in random.permutation(len(several)) if several[row])


def batch_loss(network: SpanNetwork, lower: BertNetwork, batch: Sequence[Tokens]) -> torch.Tensor:
    """Cross-entropy of where answers begin and end; any of several answers will do.

    lower: the layers that read each text apart.
    """
    of = torch.arange(len(batch)).repeat_interleave(torch.tensor([len(t.questions) for t in batch]))
    question_states, in_question = states_apart(network, lower, [q for t in batch for q in t.questions])
    text_states, in_text = states_apart(network, lower, [t.text for t in batch])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = network.spans(question_states, in_question, text_states[of], in_text[of])
    inside = in_text[of].clone()
    inside[torch.arange(len(of)), inside.sum(1) - 1] = False  # the token that ends the text
    logits = logits.masked_fill(~inside[..., None], -1e4).log_softmax(dim=1)
    loss = torch.zeros(())
    for side, golds in enumerate(([t for b in batch for t in b.starts], [t for b in batch for t in b.ends])):
        for row, gold in enumerate(golds):
            loss = loss - logits[row, sorted(set(gold)), side].logsumexp(0)
    return loss / (2 * len(of))


def states_apart(
    network: SpanNetwork, lower: BertNetwork, rows: Sequence[Sequence[int]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the (n, l, width) states of texts after the lower layers, and the mask, false at padding."""
    ids, mask = padded(rows)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    tokens = TokenIds(np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]), offsets)
    states = torch.zeros(*ids.shape, network.config.width)
    states[mask] = torch.from_numpy(lower.states(tokens, network.config.n_apart))
    return states, mask


def new_network() -> tuple[SpanNetwork, Tokenizer]:
    """Return the network before training, and the tokenizer."""
    torch.manual_seed(SEED)
    encoder = minilm()
    network = SpanNetwork(TransformerConfig())
    copy_layers(network, encoder)
    _, tensors = load_checkpoint(packaged_model("reranker-cascade"))
    known = {k: torch.from_numpy(v) for k, v in dequantized(tensors).items() if not k.startswith("head.")}
    network.load_state_dict({**network.state_dict(), **known})
    for part in (network.words, network.places, network.norm, network.apart):
        part.requires_grad_(False)
    return network, encoder.tokenizer


def _with_dropout(_module: torch.nn.Module, _given: object, out: torch.Tensor) -> torch.Tensor:
    return F.dropout(out, DROPOUT)


def trained_tensors(network: SpanNetwork) -> dict[str, torch.Tensor]:
    """Return the tensors that differ from MiniLM's."""
    ours = ("together.", "sides", "across", "head.")
    return {name: tensor for name, tensor in network.state_dict().items() if name.startswith(ours)}


def main() -> None:
    parser = ArgumentParser(prog="python -m training.reader.train", description=__doc__)
    parser.add_argument("state", type=Path, metavar="STATE", help="folder that keeps the network")
    parser.add_argument("--data", help="folder of the sets; default: PRECISE_DATA")
    parser.add_argument("--start", type=Path, help="network.pt to go on from, with other examples")
    parser.add_argument("--seed", type=int, default=SEED, help="of the examples (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="of training (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.0, help="share of the learning rates (%(default)s)")
    parser.add_argument(
        "--unanswerable",
        type=int,
        default=1,
        help="times that a question of people without an answer is asked in a round (%(default)s)",
    )
    options = parser.parse_args()
    options.state.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)
    random = np.random.default_rng(options.seed)
    paragraphs = trained_paragraphs(options.data)
    for paragraph in paragraphs:
        unanswerable = [asked for asked in paragraph.asked if not asked[1]]
        paragraph.asked += unanswerable * (options.unanswerable - 1)
    windows = Windows(paragraphs, options.seed)
    network, tokenizer = new_network()
    if options.start:
        network.load_state_dict({**network.state_dict(), **torch.load(options.start)})
    network.train()
    lower = minilm_encoder().lower_layers(network.config.n_apart, "int8")
    for layer in network.together:
        for part in (layer.out, layer.down):
            part.register_forward_hook(_with_dropout)
    groups = {
        "layers": list(network.together.parameters()),
        "head": list(network.head.parameters()),
        "gates": [network.sides, network.across],
    }
    optimizer = torch.optim.AdamW(
        [{"params": several, "lr": RATES[name]} for name, several in groups.items()],
        betas=(0.9, 0.98),
        weight_decay=0.01,
    )
    started, step, losses, n_asked, number = time.time(), 0, [], 0, 0
    while True:
        for batch in batches(windows.round(), tokenizer, random):
            left = 1 - (time.time() - started) / (60 * options.minutes)
            if left <= 0:
                torch.save(trained_tensors(network), options.state / "network.pt")
                print(f"done: {step} steps, {n_asked} questions", flush=True)
                return
            for group, rate in zip(optimizer.param_groups, RATES.values(), strict=True):
                group["lr"] = options.rate * rate * left * min(1.0, (step + 1) / WARM_UP)
            loss = batch_loss(network, lower, batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([p for several in groups.values() for p in several], 1.0)
            optimizer.step()
            step, n_asked = step + 1, n_asked + sum(len(t.questions) for t in batch)
            losses.append(loss.item())
            if step % SAVE_EVERY == 0:
                minutes = (time.time() - started) / 60
                print(
                    f"round {number}, step {step}, {n_asked} questions, {minutes:.1f} min, "
                    f"{time.process_time() / 60:.1f} CPU-min: loss {np.mean(losses[-SAVE_EVERY:]):.4f}",
                    flush=True,
                )
                torch.save(trained_tensors(network), options.state / "network.pt")
        number += 1


if __name__ == "__main__":
    main()
