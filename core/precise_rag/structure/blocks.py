"""The blocks of a text and the headings above each place in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from precise_rag.structure.marks import without_marks
from precise_rag.structure.tables import is_short_table, table_head
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


class _Heading(NamedTuple):
    """Where a heading starts, and the titles above what follows it, its own as the last."""

    start: int
    path: tuple[str, ...]


class _TableBody(NamedTuple):
    """The rows below the head of a long table, from `start` to `end`, and the head as a title."""

    start: int
    end: int
    title: str


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """The blocks of a text in order; they cover it.

    format: the format that the text was read in.
    """

    format: TextFormat
    blocks: tuple[Block, ...]
    _headings: tuple[_Heading, ...] = ()
    _bodies: tuple[_TableBody, ...] = ()

    @classmethod
    def of(cls, text: str, text_format: TextFormat, starts: Sequence[BlockStart]) -> Structure:
        """Build the structure from the starts of the blocks, ascending; the first block begins the text."""
        ends = [start for start, _, _ in starts[1:]] + [len(text)] * bool(starts)
        blocks = tuple(
            Block(start, end, kind, level) for (start, kind, level), end in zip(starts, ends, strict=True)
        )
        return cls(text_format, blocks, tuple(_headings(text, blocks)), tuple(_bodies(text, blocks)))

    def block_numbers(self, positions: Sequence[int] | IntArray) -> IntArray:
        """Return the (n,) number, from 0, of the block at each position."""
        starts = np.array([block.start for block in self.blocks], dtype=np.int64)
        return np.maximum(np.searchsorted(starts, positions, side="right") - 1, 0).astype(np.int64)

    def heading_path(self, position: int) -> tuple[str, ...]:
        """Return the titles of the headings above a position, outermost first.

        A heading is above what follows it, up to the next heading of its level or a higher one. A heading
        that starts at the position is not in its own path.
        """
        place = bisect_right(self._headings, position, key=lambda heading: heading.start) - 1
        if place < 0:
            return ()
        start, path = self._headings[place]
        return path[:-1] if start == position else path

    def above(self, position: int) -> tuple[str, ...]:
        """Return what stands above a position: its heading path, and the head of a long table in it.

        The head is a title of its cells, as "Option | Meaning". A short table is read with its head.
        """
        place = bisect_right(self._bodies, position, key=lambda body: body.start) - 1
        path = self.heading_path(position)
        inside = place >= 0 and position < self._bodies[place].end
        return (*path, self._bodies[place].title) if inside else path


_DEEPEST = 12
"""Headings in a path at most; deeper ones take the place of the last."""

_LONGEST_TITLE = 200


def _headings(text: str, blocks: Sequence[Block]) -> Iterator[_Heading]:
    above: list[tuple[int, str]] = []
    """Level and title of the headings down to the last one."""
    for block in blocks:
        if block.kind == "heading":
            while above and (above[-1][0] >= block.level or len(above) >= _DEEPEST):
                above.pop()
            above.append((block.level, heading_title(text[block.start : block.end])))
            yield _Heading(block.start, tuple(title for _, title in above))


def _bodies(text: str, blocks: Sequence[Block]) -> Iterator[_TableBody]:
    for block in blocks:
        if block.kind == "table" and not is_short_table(text, block.start, block.end):
            start, title = table_head(text, block.start, block.end)
            if title:
                yield _TableBody(start, block.end, title)


def heading_title(text: str) -> str:
    """Return the words of a heading without the marks of any format."""
    return without_marks(text)[:_LONGEST_TITLE]
