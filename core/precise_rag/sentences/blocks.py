"""Sentence ends that follow from layout: blank lines, list items, headings, table rows."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from precise_rag.types import IntArray, Span

_BLANK_LINE = re.compile(r"(?>\r\n?|\n|\u2029)[^\S\r\n\u2029]*(?>\r\n?|\n|\u2029)\s*")
_BLOCK_START = re.compile(
    rf"{_BLANK_LINE.pattern}"
    r"|(?>\r\n?|\n)[ \t]*(?=(?:[-*+•‣▪◦] |\d{1,3}[.)] |#{1,6} |\|))"
    r"|(?m:^)#{1,6} [^\r\n]{1,200}(?>\r\n?|\n)"
)


def block_spans(text: str) -> Iterator[Span]:
    """Split text after blank lines and headings, and before list items and table rows.

    Returns an iterator over spans that cover `text` in order.
    """
    start = 0
    for match in _BLOCK_START.finditer(text):
        if match.end() > start:
            yield Span(start, match.end())
        start = match.end()
    if start < len(text):
        yield Span(start, len(text))


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
