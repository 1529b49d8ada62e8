"""Sentence ends that follow from structure: blocks, blank lines, rows of tables, stanzas of code."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, zip_longest

import numpy as np

from precise_rag.sentences.lines import are_units, is_unit
from precise_rag.sentences.trimming import has_words
from precise_rag.structure import Block, Structure
from precise_rag.structure.marks import CUE, without_tags
from precise_rag.structure.tables import CELL, Rows, table_rows
from precise_rag.types import IntArray, Span

_BLANK_LINE = re.compile(
    rf"(?!\s{{1,9}}{CUE.pattern})"
    r"[\r\n\u2029](?:(?<=\r)\n)?+(?:[#%;>]|//)?+[^\S\r\n\u2029]*+(?>\r\n?|\n|\u2029)\s*|(?<=</p>)\s+(?=<p\b)"
)
"""Also what parts the paragraphs of a comment, or of HTML within another text."""
_LINE = re.compile(r"(?>\r\n?|\n)(?![\r\n])")
_ROW = re.compile(
    r"(?m:^)(?:\d{1,3}:){1,2}\d\d\r?\n[^\r\n]+(?:\r?\n|\Z)|"
    r"(?m:^)(?:[^\d\r\n]{1,40}\r?\n){1,3}(?=[^\w\s]*\d\S*[ \t]+\S)(?:[^\w\r\n]|[\d_])+(?:\r?\n|\Z)|"
    + _LINE.pattern
)
"""Also a line below its time, and numbers below up to three short lines that begin their row, as in a PDF."""
_INDENT = re.compile(r"\n([ \t]*+)[^\s)\]}]")
_WHOLE_TABLE, _LONGEST_ROW = 600, 1000
"""The most characters of a short table or row, where white space counts once, and of a row with its tags."""
_WHOLE_CODE = 600
"""Characters up to which a block of code, or a stanza of one, is one unit."""
_WHOLE_ITEM = 300
"""Characters up to which an item of a list is one unit, some sixty tokens."""
_CODE_CHARACTERS = 400
"""Short stanzas are read together up to this length, and so are the lines of longer ones and of long rows."""
_CODE_REST = 100
"""Characters at the end of a block of code that are not parted from the lines before: a bracket, a fence."""


def block_spans(text: str, structure: Structure) -> Iterator[tuple[Span, bool]]:
    """Split a text where its structure ends every sentence.

    Returns an iterator over spans in the order of `text`, and whether each is one unit whatever its words: a
    heading, a short table, a short row or the head of another or of one among equals, a block of code or a
    stanza of a long one, a line of a log or list. A heading or term without a letter, such as `$$`, has no
    span: what follows it begins with it.
    """
    tables = {one: table_rows(text, one.start, one.end) for one in structure.blocks if one.kind == "table"}
    lasts = chain.from_iterable(rows.titles[-1:] for rows in tables.values())
    heads = Counter(title for title in lasts if title.count(" | ") > 1)  # of two columns they are records
    read = without_tags if structure.format == "html" else str.strip
    for block, following in zip_longest(structure.blocks, structure.blocks[1:]):
        if block.kind == "code":
            for stanza in _at_most(text, block.start, block.end, _BLANK_LINE):
                parts = _at_most(text, *stanza, _before_statements(text, *stanza))
                yield from ((line, True) for part in parts for line in _at_most(text, *part, _LINE))
        elif block in tables:
            recurs = any(heads[title] > 1 for title in tables[block].titles[-1:])
            for row in _rows(text, block, tables[block], recurs):
                is_long = "\n" not in text[slice(*row)].strip() and not _is_short(text, *row)
                yield from ((part, not is_long) for part in (_split(text, *row, CELL) if is_long else [row]))
        elif block.kind == "heading" or (block.kind == "item" and block.end - block.start <= _WHOLE_ITEM):
            is_above = following is not None and (block.kind == "heading" or following.level > block.level)
            if not is_above or has_words(text[block.start : block.end]):
                yield Span(block.start, block.end), True
        else:
            for part in _split(text, block.start, block.end, _BLANK_LINE):
                lines = list(_split(text, part.start, part.end, _LINE))
                if are_units([words for start, end in lines if (words := read(text[start:end]))]):
                    rows = _split(text, part.start, part.end, _ROW)
                    yield from ((row, is_unit(text[row.start : row.end])) for row in rows)
                else:
                    yield part, False


def _split(text: str, start: int, end: int, ends: re.Pattern[str]) -> Iterator[Span]:
    """Split after each match; white space at the end of the block belongs to its last span."""
    last = start
    for match in ends.finditer(text, start, end):
        if last < match.end() < end:
            yield Span(last, match.end())
            last = match.end()
    yield Span(last, end)


def _rows(text: str, block: Block, rows: Rows, recurs: bool) -> Iterator[Span]:
    """The whole table if it is short, and its head does not recur; else its head, and each row."""
    is_whole = not recurs and len(" ".join(text[block.start : block.end].split())) <= _WHOLE_TABLE
    starts = () if is_whole else rows.starts[max(rows.n_head, 1) :]
    for row in map(Span._make, pairwise([block.start, *starts, block.end])):
        yield from [row] if is_whole or _is_short(text, *row) else _at_most(text, *row, _LINE)


def _is_short(text: str, start: int, end: int) -> bool:
    """Whether a row is short without its tags; one with words behind its end, as of a layout, with them."""
    row = text[start:end].strip()
    is_page = "</tr>" in row and has_words(row.rpartition("</tr>")[2])  # laid out in tables
    return len(row if is_page or len(row) > _LONGEST_ROW else without_tags(row)) <= _WHOLE_TABLE


def _before_statements(text: str, start: int, end: int) -> re.Pattern[str]:
    """Where lines end before those indented least; the first, and brackets that close, may be so less."""
    indents = [len(line[1]) for line in _INDENT.finditer(text, start, end)]
    return re.compile(rf"\n(?=[ \t]{{0,{min(indents, default=0)}}}[^\s)\]}}])")


def _at_most(text: str, start: int, end: int, ends: re.Pattern[str]) -> Iterator[Span]:
    """The part as it is; a long one in smaller parts, short ones together, a short rest with those before."""
    if len(text[start:end].strip()) <= _WHOLE_CODE:
        yield Span(start, end)
        return
    first = last = start
    for part in _split(text, start, end, ends):
        is_rest = end - last <= _CODE_REST
        if part.end - first > _CODE_CHARACTERS and last > first and not is_rest:
            yield Span(first, last)
            first = last
        last = part.end
    yield Span(first, end)


def paragraph_ids(text: str, spans: Sequence[tuple[int, int]] | IntArray) -> IntArray:
    """Number the paragraph of each span, from 0; a blank line begins a new paragraph.

    spans: (n, 2) start and end of each span, in order.
    Returns (n,) numbers; a span belongs to the paragraph in which it starts.
    """
    if not len(spans):
        return np.zeros(0, dtype=np.int64)
    head = len(text) - len(text.lstrip())
    breaks = np.array([match.end() for match in _BLANK_LINE.finditer(text, head)], dtype=np.int64)
    places = np.searchsorted(breaks, np.asarray(spans, dtype=np.int64)[:, 0], side="right")
    return np.cumsum(np.diff(places, prepend=places[:1]) > 0, dtype=np.int64)
