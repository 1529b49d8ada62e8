"""What a sentence needs beside it to be understood: what it leans on, its lead-in, what it announces.

"However, it froze."       the sentence before it
an item, code, a table     the lead-in above it: "Three parts wear:"
"Three parts wear:"        the list, code or table that follows
a sentence of an item      the first sentence of the item, such as a term or an option
"""

from collections.abc import Iterator, Sequence

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


def needs(stretch: Stretch) -> Iterator[tuple[int, int]]:
    """Yield (row, needed) for the sentences of a stretch: who sends the sentence `row` sends `needed`, too.

    A sentence that another one leans on is needed if it is short and leans on none itself.
    """
    texts = [sentence.text for sentence in stretch.sentences]
    tokens = [sentence.n_tokens or 0 for sentence in stretch.sentences]
    blocks = _blocks(stretch)
    language = language_of(stretch.text)
    leaning = [
        block.kind in _PROSE and leans(text, language) for block, text in zip(blocks, texts, strict=True)
    ]
    leads: list[tuple[int, int]] = []
    """Rows of lead-ins whose lists go on, and the levels of these lists."""
    first = lead = 0
    """The first row of the block, and the row of its lead-in, -1 without one."""
    for row in range(1, len(texts)):
        before, kind, level = row - 1, blocks[row].kind, blocks[row].level
        if kind == "heading" or blocks[before].kind == "heading":
            leads, lead, first = [], -1, row
            continue
        goes_on = blocks[row] == blocks[before] or (
            kind != "item" and blocks[before].kind in (kind, "paragraph")
        )
        if leaning[row] and goes_on and not leaning[before] and tokens[before] <= LONGEST_BEFORE:
            yield row, before
        if blocks[row] != blocks[before]:
            first = row
            leads = [
                known for known in leads if kind in _BESIDE_ITEMS or (kind == "item" and known[1] <= level)
            ]
            is_led = kind in _ANNOUNCED and _announces(texts[before], blocks[before].kind, kind)
            if is_led:
                yield from ((before, after) for after in _announced(row, blocks, tokens))
            if is_led and kind == "item" and (blocks[before].kind != "item" or level > blocks[before].level):
                leads.append((before, level))
            lead = leads[-1][0] if leads and kind == "item" else before if is_led else -1
            if lead >= 0 and tokens[lead] <= LONGEST_BEFORE:
                yield row, lead
        elif kind == "code" and lead >= 0 and tokens[lead] <= LONGEST_BEFORE:
            yield row, lead
        elif kind == "item" and tokens[first] <= LONGEST_BEFORE:
            yield row, first


def _blocks(stretch: Stretch) -> list[Block]:
    """The block of each sentence."""
    origin = stretch.sentences[0].start
    structure = read_structure(stretch.text)
    starts = np.array([sentence.start - origin for sentence in stretch.sentences], dtype=np.int64)
    return [structure.blocks[number] for number in structure.block_numbers(starts).tolist()]


def _announces(text: str, kind: BlockKind, following: BlockKind) -> bool:
    """Whether a sentence announces the block after it: it ends in a colon, or in nothing before code."""
    if kind not in _PROSE:
        return False
    return ends_in_colon(text) or (following in ("code", "table") and not ends_sentence(text))


def _announced(row: int, blocks: Sequence[Block], tokens: Sequence[int]) -> Iterator[int]:
    """The rows of the list, code or table that begins at a row, up to LONGEST_ANNOUNCED tokens."""
    start, left = blocks[row], LONGEST_ANNOUNCED
    for after in range(row, len(blocks)):
        left -= tokens[after]
        is_list = start.kind == blocks[after].kind == "item" and blocks[after].level >= start.level
        if left < 0 or not (is_list or blocks[after] == start):
            return
        yield after
