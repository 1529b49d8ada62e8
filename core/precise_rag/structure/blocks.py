"""The blocks of a text and the headings above each place in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from precise_rag.structure.marks import ITEM, without_marks
from precise_rag.structure.tables import is_short_table, table_rows
from precise_rag.types import IntArray

TextFormat = Literal["markdown", "html", "text"]
"""How a text is marked up. reStructuredText and other underlined or indented text is "text"."""

BlockKind = Literal["heading", "paragraph", "item", "table", "code", "quote", "turn"]
"""What a block is. item: of a list. turn: what one speaker says in a transcript."""

BlockStart = tuple[int, BlockKind, int]
"""Where a block starts, its kind and its level."""


class Block(NamedTuple):
    """The part `text[start:end]`, in code points, with the white space after it.

    kind: what it is. level: depth of a heading, from 1, or of a list item, from 1; 0 of other blocks.
    """

    start: int
    end: int
    kind: BlockKind
    level: int


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """The blocks of a text in order; they cover it.

    format: the format that the text was read in.
    """

    format: TextFormat
    blocks: tuple[Block, ...]
    _above: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Places, ascending, and what stands above the text from there on."""

    @classmethod
    def of(cls, text: str, text_format: TextFormat, starts: Sequence[BlockStart]) -> Structure:
        """Build the structure from the starts of the blocks, ascending; the first block begins the text."""
        ends = [start for start, _, _ in starts[1:]] + [len(text)] * bool(starts)
        blocks = tuple(
            Block(start, end, kind, level) for (start, kind, level), end in zip(starts, ends, strict=True)
        )
        return cls(text_format, blocks, tuple(_above(text, text_format, blocks)))

    def block_numbers(self, positions: Sequence[int] | IntArray) -> IntArray:
        """Return the (n,) number, from 0, of the block at each position."""
        starts = np.array([block.start for block in self.blocks], dtype=np.int64)
        return np.maximum(np.searchsorted(starts, positions, side="right") - 1, 0).astype(np.int64)

    def above(self, position: int) -> tuple[str, ...]:
        """Return what stands above a position: titles of headings, outermost first, and a table's head.

        A heading is above what follows it, up to the next heading of its level or a higher one; a term, such
        as an option in plain text, above what is indented below it. The head is above the other rows of a
        long table, as a title of its cells: "Option | Meaning".
        """
        place = bisect_right(self._above, position, key=lambda change: change[0]) - 1
        return self._above[place][1] if place >= 0 else ()


_DEEPEST = 12
"""Headings in a path at most; deeper ones take the place of the last."""

_LONGEST_TITLE = 200


def _above(
    text: str, text_format: TextFormat, blocks: Sequence[Block]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    above: list[tuple[int, str]] = []
    """Level and title of the headings down to the last one."""
    terms: list[tuple[int, str]] = []
    """Indent and words of the terms down to the last one."""
    for block in blocks:
        while block.kind == "heading" and above and (above[-1][0] >= block.level or len(above) >= _DEEPEST):
            above.pop()
        first = _line(text, block.start)
        below = [term for term in terms if block.kind != "heading" and term[0] < _indent(first)]
        path = tuple(title for _, title in (*above, *below))
        if len(below) < len(terms):
            terms = below
            yield block.start, path
        if block.kind == "heading":
            title = heading_title(text[block.start : block.end])
            above.append((block.level, title))
            yield block.start, path
            yield block.end, (*path, title)
        elif block.kind == "table" and not is_short_table(text, block.start, block.end):
            rows = table_rows(text, block.start, block.end)
            if rows.n_head:
                yield rows.starts[rows.n_head], (*path, rows.title)
                yield block.end, path
        elif block.kind == "item" and text_format == "text" and _is_term(text, block.start, first):
            terms.append((_indent(first), heading_title(first)))
            yield block.start + len(first), (*path, terms[-1][1])


def _is_term(text: str, start: int, line: str) -> bool:
    """Whether the first line of an item, without a list's mark, is above one that is indented more."""
    return not ITEM.match(line) and _indent(_line(text, start + len(line))) > _indent(line) + 1


def _line(text: str, start: int) -> str:
    """The line that begins at a place, with its line feed."""
    return text[start : text.find("\n", start) + 1 or len(text)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def heading_title(text: str) -> str:
    """Return the words of a heading without the marks of any format."""
    return without_marks(text)[:_LONGEST_TITLE]
