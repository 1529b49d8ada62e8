"""Sentence ends that follow from structure: blocks, blank lines, table rows, lines of code."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from precise_rag.structure import Structure
from precise_rag.types import IntArray, Span

_BLANK_LINE = re.compile(r"[\r\n\u2029](?:(?<=\r)\n)?+[^\S\r\n\u2029]*(?>\r\n?|\n|\u2029)\s*")
_ROW = re.compile(r"(?>\r\n?|\n)[ \t]*(?=[^\s])|(?<=\S)\s{0,20}(?=<tr\b)", re.IGNORECASE)
_LINE = re.compile(r"(?>\r\n?|\n)(?![\r\n])")
_CODE_CHARACTERS = 400
"""Lines of code are read together up to this length, so that a statement keeps its neighbours."""

_CODE_REST = 100
"""Characters at the end of a block of code that are not parted from the lines before: a bracket, a fence."""


def block_spans(text: str, structure: Structure) -> Iterator[tuple[Span, bool]]:
    """Split a text where its structure ends every sentence.

    Returns an iterator over spans that cover `text` in order, and whether each is one sentence whatever
    its words: a heading, a table row, some lines of code.
    """
    for block in structure.blocks:
        whole = block.kind in ("heading", "table", "code")
        if block.kind == "code":
            yield from ((span, True) for span in _lines_together(text, block.start, block.end))
        elif block.kind == "heading":
            yield Span(block.start, block.end), True
        else:
            ends = _ROW if block.kind == "table" else _BLANK_LINE
            yield from ((span, whole) for span in _split(text, block.start, block.end, ends))


def _split(text: str, start: int, end: int, ends: re.Pattern[str]) -> Iterator[Span]:
    """Split after each match; white space at the end of the block belongs to its last span."""
    last = start
    for match in ends.finditer(text, start, end):
        if last < match.end() < end:
            yield Span(last, match.end())
            last = match.end()
    yield Span(last, end)


def _lines_together(text: str, start: int, end: int) -> Iterator[Span]:
    first = last = start
    for line in _split(text, start, end, _LINE):
        is_rest = end - last <= _CODE_REST
        if line.end - first > _CODE_CHARACTERS and last > first and not is_rest:
            yield Span(first, last)
            first = last
        last = line.end
    yield Span(first, end)


def paragraph_ids(text: str, spans: Sequence[tuple[int, int]] | IntArray) -> IntArray:
    """Number the paragraph of each span, from 0; a blank line begins a new paragraph.

    text: the text.
    spans: (n, 2) start and end of each span, in order.
    Returns (n,) numbers; a span belongs to the paragraph in which it starts.
    """
    if not len(spans):
        return np.zeros(0, dtype=np.int64)
    head = len(text) - len(text.lstrip())
    breaks = np.array([match.end() for match in _BLANK_LINE.finditer(text, head)], dtype=np.int64)
    places = np.searchsorted(breaks, np.asarray(spans, dtype=np.int64)[:, 0], side="right")
    return np.cumsum(np.diff(places, prepend=places[:1]) > 0, dtype=np.int64)
