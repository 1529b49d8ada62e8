"""The page and the headings of a place in a document, from the document's metadata.

`read_documents` keeps them in the metadata: "headings" has [offset, level, title] of each heading; see
`precise_rag.pages` for "pages" and "boxes".
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precise_rag.metadata_keys import BOXES_KEY, PAGES_KEY
from precise_rag.pages import Box, boxes_of, page_at
from precise_rag.structure import read_structure
from precise_rag.structure.blocks import heading_title


class Place(NamedTuple):
    """Where a piece of a document is.

    doc_id: the document's id.
    page: the page or slide on which it begins, from 1; None if the document has none.
    headings: the titles of the headings above it, outermost first; in source code, the classes and functions
        around it.
    boxes: the rectangles of its lines, if the document is a PDF.
    """

    doc_id: str
    page: int | None = None
    headings: tuple[str, ...] = ()
    boxes: tuple[Box, ...] = ()

    def __str__(self) -> str:
        page = "" if self.page is None else f", page {self.page}"
        return f"{self.doc_id}{page}" + (f": {' › '.join(self.headings)}" if self.headings else "")


def place_of(piece: Any) -> Place:
    """Return the place of a Chunk or Candidate, or of a Passage of an answer.

    Documents that `read_documents` did not make have no pages and headings.
    """
    metadata = piece.metadata
    return Place(
        piece.doc_id,
        page_at(metadata, piece.start),
        _headings(metadata.get("headings"), piece.start),
        boxes_of(metadata, piece.start, piece.end),
    )


def places(text: str, pages: Sequence[int] = (), boxes: str = "") -> Mapping[str, Any]:
    """Return the metadata that `place_of` reads. pages, boxes: see `precise_rag.pages`."""
    blocks = read_structure(text, "markdown" if pages else None).blocks
    headings = [
        [block.start, block.level, heading_title(text[block.start : block.end])]
        for block in blocks
        if block.kind == "heading"
    ]
    facts: dict[str, Any] = {"headings": headings} if headings else {}
    facts |= {PAGES_KEY: list(pages)} if pages else {}
    return facts | ({BOXES_KEY: boxes} if boxes else {})


def _headings(headings: Any, start: int) -> tuple[str, ...]:
    path: list[tuple[int, str]] = []
    try:
        for offset, level, title in headings or ():
            if offset > start:
                break
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, str(title)))
    except (TypeError, ValueError):  # metadata of the same name from elsewhere
        return ()
    return tuple(title for _, title in path)
