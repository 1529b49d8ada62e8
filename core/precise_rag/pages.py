"""Pages of a document, and the rectangles on them, from the metadata that `read_documents` writes.

"pages" has the offset at which each page begins. "boxes" is one text with all lines of a PDF in
order. A line is its offset and its left, upper, right and lower edge on the page, as "0 72 90 510 104". Edges
are in points, of which 72 are an inch, from the upper left corner.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import ceil, floor
from typing import Any, NamedTuple

from precise_rag.metadata_keys import BOXES_KEY, PAGES_KEY

_MOST_BOXES = 200
"""Rectangles of one piece."""


class Box(NamedTuple):
    """A rectangle on a page, around a line of text or a row of a table.

    page: from 1. x0, top, x1, bottom: its edges, in points from the upper left corner of the page.
    """

    page: int
    x0: int
    top: int
    x1: int
    bottom: int


def page_at(metadata: Mapping[str, Any], offset: int) -> int | None:
    """Return the page or slide of a place, from 1; None if the document has none."""
    pages = metadata.get(PAGES_KEY)
    if not isinstance(pages, list | tuple) or not all(isinstance(page, int) for page in pages):
        return None
    return bisect_right(pages, offset) or None


def boxes_of(metadata: Mapping[str, Any], start: int, end: int) -> tuple[Box, ...]:
    """Return the rectangles of the lines in a span of a PDF's text, at most 200; none for other documents."""
    written = metadata.get(BOXES_KEY)
    lines = _read(written) if isinstance(written, str) else ()
    first = max(bisect_right(lines, start, key=lambda line: line[0]) - 1, 0)
    last = bisect_left(lines, end, key=lambda line: line[0])
    return tuple(
        Box(page, *edges)
        for offset, *edges in lines[first : min(last, first + _MOST_BOXES)]
        if (page := page_at(metadata, offset)) is not None
    )


def write_boxes(lines: Iterable[tuple[int, tuple[float, float, float, float]]]) -> str:
    """Return the text of "boxes": (offset, (x0, top, x1, bottom)) of each line, in the order of the text."""
    return ";".join(
        f"{offset} {floor(x0)} {floor(top)} {ceil(x1)} {ceil(bottom)}"
        for offset, (x0, top, x1, bottom) in lines
    )


@lru_cache(maxsize=16)
def _read(written: str) -> tuple[tuple[int, int, int, int, int], ...]:
    try:
        lines = [tuple(map(int, line.split())) for line in written.split(";")] if written else []
    except ValueError:  # metadata of the same name from elsewhere
        return ()
    return tuple(lines) if all(len(line) == 5 for line in lines) else ()  # type: ignore[arg-type]
