"""What a sentence needs beside it to be understood: what it leans on, its lead-in, what it announces.

"However, it froze."       the sentence before it
an item, code, a table     the lead-in above it: "Three parts wear:"
"Three parts wear:"        the list, code or table that follows
a sentence of an item      the first sentence of the item, such as a term or an option
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from precise_rag.evidence.leaning import language_of, leans
from precise_rag.structure import Block, BlockKind, read_structure
from precise_rag.structure.marks import ends_in_colon, ends_sentence
from precise_rag.types import Stretch

LONGEST_BEFORE = 60
"""Tokens of a sentence that is taken along because another one leans on it, at most."""

LONGEST_ANNOUNCED = 150
"""Tokens that are taken along because they are announced, at most."""

_ANNOUNCED: tuple[BlockKind, ...] = ("item", "code", "table", "quote")
_BESIDE_ITEMS: tuple[BlockKind, ...] = ("code", "table", "quote")
_PROSE: tuple[BlockKind, ...] = ("paragraph", "item", "quote", "turn")


class _Sentence(NamedTuple):
    """A sentence with the block that it stands in. leans: whether it leans on the sentence before it."""

    text: str
    n_tokens: int
    block: Block
    leans: bool

    @property
    def is_short(self) -> bool:
        return self.n_tokens <= LONGEST_BEFORE


def needs(stretch: Stretch) -> Iterator[tuple[int, int]]:
    """Yield (row, needed) for the sentences of a stretch: who sends the sentence `row` sends `needed`, too.

    A sentence that another one leans on is needed if it is short and leans on none itself.
    """
    sentences = _sentences(stretch)
    first = 0  # row of the first sentence of the block
    lead: int | None = 0  # row of the lead-in of the block
    lists: list[tuple[int, int]] = []  # that may go on: row of the lead-in, and level of the items
    for row in range(1, len(sentences)):
        sentence, before = sentences[row], sentences[row - 1]
        kind, level = sentence.block.kind, sentence.block.level
        if "heading" in (kind, before.block.kind):
            first, lead, lists = row, None, []
            continue
        if _leans_on(sentence, before):
            yield row, row - 1
        if sentence.block == before.block:
            needed = {"code": lead, "item": first}.get(kind)
        else:
            first = row
            in_item = kind == "item"
            lists = [one for one in lists if kind in _BESIDE_ITEMS or (in_item and one[1] <= level)]
            is_led = _announces(before, kind)
            if is_led:
                yield from ((row - 1, after) for after in _announced(row, sentences))
            if is_led and in_item and (before.block.kind != "item" or level > before.block.level):
                lists.append((row - 1, level))
            lead = lists[-1][0] if lists and in_item else row - 1 if is_led else None
            needed = lead
        if needed is not None and sentences[needed].is_short:
            yield row, needed


def _sentences(stretch: Stretch) -> list[_Sentence]:
    origin = stretch.sentences[0].start
    structure = read_structure(stretch.text)
    starts = np.array([sentence.start - origin for sentence in stretch.sentences], dtype=np.int64)
    blocks = [structure.blocks[number] for number in structure.block_numbers(starts).tolist()]
    language = language_of(stretch.text)
    return [
        _Sentence(one.text, one.n_tokens or 0, block, block.kind in _PROSE and leans(one.text, language))
        for one, block in zip(stretch.sentences, blocks, strict=True)
    ]


def _leans_on(sentence: _Sentence, before: _Sentence) -> bool:
    """Whether a sentence leans on the one before it, which is short, leans on none and leads to its block."""
    kind = sentence.block.kind
    goes_on = kind != "item" and before.block.kind in (kind, "paragraph")
    goes_on = goes_on or sentence.block == before.block
    return sentence.leans and goes_on and not before.leans and before.is_short


def _announces(sentence: _Sentence, following: BlockKind) -> bool:
    """Whether a sentence announces the block after it: it ends in a colon, or in nothing before code."""
    if sentence.block.kind not in _PROSE or following not in _ANNOUNCED:
        return False
    text = sentence.text
    return ends_in_colon(text) or (following in ("code", "table") and not ends_sentence(text))


def _announced(row: int, sentences: Sequence[_Sentence]) -> Iterator[int]:
    """The rows of the list, code or table that begins at a row, up to LONGEST_ANNOUNCED tokens."""
    start, left = sentences[row].block, LONGEST_ANNOUNCED
    for after in range(row, len(sentences)):
        block = sentences[after].block
        left -= sentences[after].n_tokens
        is_list = start.kind == block.kind == "item" and block.level >= start.level
        if left < 0 or not (is_list or block == start):
            return
        yield after
