"""Train the reader, which finds where in a text the answer to a question begins and ends.

    python -m training.reader.train STATE --data DIR [--minutes N]

It is the cascade's cross-encoder with another head. The layers that read both texts begin as those of the
packaged cascade, or with --start where an earlier training ended. They are trained on questions with short
answers, some of them asked of windows that do not answer them. The learning rate falls to 0 within the
minutes. STATE is a folder; `network.pt` there has the trained tensors.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer

from precise_rag.encoders.sentence_transformer import fast_precision
from precise_rag.rerank.pair_network import Pairs, SpanNetwork
from precise_rag.rerank.pairs import CANDIDATE_TOKENS, TransformerConfig
from training.joint_layers import LowerLayers, add_options, start_from_package, train
from training.reader.examples import Window, Windows
from training.reader.questions import trained_paragraphs

QUESTION_TOKENS = 40
BATCH_TOKENS = 3_200
BLOCK = 128
"""Windows that are sorted by length before they are put into batches."""

RATES = {"layers": 3e-4, "head": 1e-3, "gates": 1e-3}
"""Learning rates at the start; the gates are the parameters for attention across the texts."""


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


def endless(windows: Windows, tokenizer: Tokenizer, random: np.random.Generator) -> Iterator[list[Tokens]]:
    """Yield the batches of one round after the other; each question is asked once a round."""
    while True:
        yield from batches(windows.round(), tokenizer, random)


def batch_loss(network: SpanNetwork, lower: LowerLayers, batch: Sequence[Tokens]) -> torch.Tensor:
    """Cross-entropy of where answers begin and end; any of several answers will do."""
    of = torch.arange(len(batch)).repeat_interleave(torch.tensor([len(t.questions) for t in batch]))
    question_states, in_question = lower.states([q for t in batch for q in t.questions])
    text_states, in_text = lower.states([t.text for t in batch])
    with fast_precision(question_states.device.type):
        logits = network.spans(Pairs(question_states, in_question, text_states[of], in_text[of]))
    inside = in_text[of].clone()
    inside[torch.arange(len(of)), inside.sum(1) - 1] = False  # the token that ends the text
    logits = logits.masked_fill(~inside[..., None], -1e4).log_softmax(dim=1)
    loss = torch.zeros((), device=logits.device)
    for side, golds in enumerate(([t for b in batch for t in b.starts], [t for b in batch for t in b.ends])):
        for row, gold in enumerate(golds):
            loss = loss - logits[row, sorted(set(gold)), side].logsumexp(0)
    return loss / (2 * len(of))


def main() -> None:
    parser = ArgumentParser(prog="python -m training.reader.train", description=__doc__)
    add_options(parser)
    parser.add_argument("--data", help="folder of the sets; default: PRECISE_DATA")
    parser.add_argument(
        "--unanswerable",
        type=int,
        default=1,
        help="times that a question of people without an answer is asked in a round (%(default)s)",
    )
    options = parser.parse_args()
    paragraphs = trained_paragraphs(options.data)
    for paragraph in paragraphs:
        unanswerable = [asked for asked in paragraph.asked if not asked[1]]
        paragraph.asked += unanswerable * (options.unanswerable - 1)
    network = SpanNetwork(TransformerConfig())
    tokenizer = start_from_package(network, ["reranker-cascade"])
    lower = LowerLayers(network.to(options.device))
    examples = endless(Windows(paragraphs, options.seed), tokenizer, np.random.default_rng(options.seed))
    train(network, examples, lambda batch: batch_loss(network, lower, batch), RATES, options)


if __name__ == "__main__":
    main()
