"""The blocks of a text and the headings above each place in it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, takewhile
from operator import eq, itemgetter
from typing import Literal, NamedTuple

import numpy as np

from precise_rag.structure.heads import caption
from precise_rag.structure.marks import ITEM, MAIL_HEAD, SMALL_PRINT, indent_of, label_end, without_marks
from precise_rag.structure.tables import FIRST_CELL, table_rows
from precise_rag.types import IntArray, Titles

TextFormat = Literal["markdown", "html", "data", "source", "text"]
"""How a text is marked up. data: nested, such as JSON, YAML and XML. source: source code. reStructuredText
and other underlined or indented text is "text"."""
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
    _above: tuple[tuple[int, Titles], ...] = ()
    """Places, ascending, and what stands above the text from there on."""

    @classmethod
    def of(
        cls,
        text: str,
        text_format: TextFormat,
        starts: Sequence[BlockStart],
        above: Sequence[tuple[int, Titles]] | None = None,
    ) -> Structure:
        """Build the structure from the starts of the blocks, ascending; the first block begins the text.

        above: places, ascending, and what stands above the text from there on; default: headings, terms, and
            heads of tables.
        """
        ends = [start for start, _, _ in starts[1:]] + [len(text)] * bool(starts)
        blocks = tuple(Block(one[0], end, *one[1:]) for one, end in zip(starts, ends, strict=True))
        above = tuple(_above(text, text_format, blocks) if above is None else above)
        return cls(text_format, tuple(b._replace(level=b.level * (b.kind[0] != "p")) for b in blocks), above)

    def block_numbers(self, positions: Sequence[int] | IntArray) -> IntArray:
        """Return the (n,) number, from 0, of the block at each position."""
        starts = np.array([block.start for block in self.blocks], dtype=np.int64)
        return np.maximum(np.searchsorted(starts, positions, side="right") - 1, 0).astype(np.int64)

    def above(self, position: int) -> tuple[str, ...]:
        """Return what stands above a position: titles of headings, outermost first, and a table's head.

        A heading is above what follows it, up to the next heading of its level or a higher one; a term, such
        as an option in plain text, above what is indented below it. The head is above the other rows of a
        table, as a title of its cells, after the name of a group of rows: "Oil: Option | Meaning"; and a
        short first cell above the others of a long row.
        """
        place = bisect_right(self._above, position, key=lambda change: change[0]) - 1
        return self._above[place][1] if place >= 0 else ()

    def above_all(self, start: int, end: int) -> tuple[str, ...]:
        """Return what stands above the start of a part; of data and source code, above all of it."""
        first, last = (bisect_left(self._above, place, key=itemgetter(0)) for place in (start + 1, end))
        inside = self._above[first:last] if self.format in ("data", "source") else ()
        return reduce(shared, (path for _, path in inside), self.above(start))


def shared(above: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the beginning that two paths of titles share."""
    return above[: len(list(takewhile(bool, map(eq, above, other))))]


DEEPEST = 12
"""Headings in a path at most; deeper ones take the place of the last. And terms, of which the first go."""
_LONGEST_TITLE, _LONGEST_LEAD = 200, 2_000
_MEANING = re.compile(r" {0,3}:[ \t]+")
_DEPTHS = {"code": 99, "table": 99, "quote": 99}
"""What belongs to any term above it."""
_VERSION = re.compile(r"(?:version )?[\[v]{0,2}\d{1,6}\.\d|\[?\d{4}-\d\d-\d\d\b", re.IGNORECASE)
_DT = re.compile(r"<dt\b", re.IGNORECASE)
OPTIONS = re.compile(r"([ \t]*+)--?\w[^\s\\]*+(?: [^\s\\]++){0,3}[ \t\r]*+\n\1-")
"""An option without its meaning, and another below it: "-g" and "--grow"."""
_QUOTED_LINE = re.compile(r"([> \t]*)([^\n]*)\n?")


def _above(text: str, text_format: TextFormat, blocks: Sequence[Block]) -> Iterator[tuple[int, Titles]]:
    above: list[tuple[int, str, int]] = []
    """Twice the level, title, and least indent of what is below, of the headings down to the last one."""
    terms: list[tuple[int, str]] = []
    """Indent and words of the terms down to the last one."""
    in_versions = _in_versions(text, blocks)
    for before, block in pairwise((*blocks[:1], *blocks)):
        level = 2 * block.level + (block.start in in_versions)
        may_head = block.kind == "heading" or (block.kind == "paragraph" and level > 1)
        while may_head and above and (above[-1][0] >= level or len(above) >= DEEPEST):
            above.pop()
        lost = lost_indent(text[block.start :]) if before is block and text_format == "text" else 0
        first = " " * lost + _line(text, block.start) if text_format == "text" else ""
        depth = _indent(first) if first else _DEPTHS.get(block.kind, block.level)
        around = [heading for heading in above if heading[2] <= depth or block.kind in _DEPTHS]
        below = [term for term in terms[-DEEPEST:] if block.kind != "heading" and term[0] < depth]
        path = (*(title for _, title, _ in around), *(title for _, title in below))
        if may_head or len(around) < len(above) or len(below) < len(terms):
            above, terms = around, below
            yield block.start, path
        if block.kind == "heading":
            title = heading_title(text[block.start : block.end])
            is_line = first.strip() == text[block.start : block.end].strip()
            above.append((level, title, min(depth, _indent(_line(text, block.end))) if is_line else 0))
            yield block.start, path
            yield block.end, (*path, title)
        elif block.kind == "table":
            rows = table_rows(text, block.start, block.end)
            below_head = zip(rows.starts[rows.n_head :], rows.titles, strict=False)
            over = caption(text[before.start : before.end]) if before.kind == "paragraph" else ""
            for start, title in below_head:
                titles = (*path, *filter(None, [": ".join(filter(None, [over, title]))]))
                cells = filter(None, [FIRST_CELL.match(text, start, block.end)])
                named = ((cell.end(1), (*titles, without_marks(cell[1]))) for cell in cells)
                yield from ((start, titles), *named)
            yield block.end, path
        elif block.kind == "quote":
            lead = before if before.kind == "paragraph" else block
            yield from ((at, (*path, *writers)) for at, writers in _writers(text, lead.start, block.end))
            yield block.end, path
        elif block.kind == "item" and (end := _term_end(text, text_format, block, first)):
            terms.append((depth, heading_title(text[block.start : end])))
            yield end, (*path, terms[-1][1])


def _in_versions(text: str, blocks: Sequence[Block]) -> set[int]:
    """Starts of the headings of a change log that have the level of the version which they belong to.

    One of them recurs in another version: "Bug fixes".
    """
    inside: dict[int, str] = {}
    version = 0
    for block in blocks:
        if block.kind == "heading":
            title = heading_title(text[block.start : block.end])
            if _VERSION.match(title):
                version = block.level
            elif block.level == version:
                inside[block.start] = title
            elif block.level < version:
                version = 0
    return set(inside) if len(set(inside.values())) < len(inside) else set()


def _writers(text: str, start: int, end: int) -> Iterator[tuple[int, Titles]]:
    """Places in a quote, and the lines above them that say who wrote what is quoted: "On 3 May Ann wrote:".

    start, end: of the quote with the paragraph before it.
    """
    depth, is_over = 0, False
    above: list[tuple[int, str]] = []
    """Marks before the lines below a line, and that line."""
    paragraph = ""
    for line in _QUOTED_LINE.finditer(text, start, end):
        now, words = line[1].count(">"), line[2]
        if words and now != depth:
            title = heading_title(paragraph)
            above = [other for other in above if other[0] <= now]
            above += [(now, title)] if now > depth and title.endswith(":") else []
            yield line.start(), tuple(title for _, title in above)
        if words:
            paragraph = words if is_over or now != depth else f"{paragraph} {words}"[:_LONGEST_LEAD]
            depth = now
        is_over = not words


def _term_end(text: str, text_format: TextFormat, block: Block, line: str) -> int:
    """Where a term ends with which an item begins, or that it is; 0 without one. line: its first one."""
    if text_format != "text":
        return block.end if _DT.search(text, *block[:2]) or _MEANING.match(text, block.end) else 0
    if line.lstrip().startswith(".. "):
        return block.end
    end = block.start + len(_line(text, block.start))
    while end < block.end and OPTIONS.match(line + (below := _line(text, end))):
        line, end = below, end + len(below)
    label = label_end(line, _line(text, end))
    if any(map(str.isalnum, line[:label])):
        return end - len(line) + label
    place = end if text[end : block.end].strip() else block.end
    return 0 if ITEM.match(line) or _indent(_line(text, place)) <= _indent(line) + 1 else end


def _line(text: str, start: int) -> str:
    """The line that begins at a place, with its line feed."""
    return text[start : text.find("\n", start) + 1 or len(text)]


def _indent(line: str) -> int:
    """The columns before a line, or before the meaning of a term that begins after a colon."""
    return meaning.end() if (meaning := _MEANING.match(line)) else indent_of(line)


def lost_indent(text: str) -> int:
    """The spaces that the first line had before the text was cut out of another: those of a later line that
    is less indented than the second, up to a line in capitals, or of an option below one; 0 without one."""
    first, *lines = [line for line in text.split("\n") if line.strip()] or [""]
    rest = list(takewhile(lambda line: line[0].isspace() or not line.isupper(), lines))
    least = 0 if indent_of(first) else min(map(_indent, rest), default=0)
    is_less = least and (least < _indent(rest[0]) or OPTIONS.match(f"{first}\n{rest[0].lstrip()}"))
    return least if is_less else 0


def heading_title(text: str) -> str:
    """Return the words of a heading without the marks of any format."""
    is_mail = "\n" in text and MAIL_HEAD.match(f"{text}\n")
    return without_marks(SMALL_PRINT.sub("", f"{text}\n") if is_mail else text)[:_LONGEST_TITLE]
