"""The page and the headings of a place in a document, from the document's metadata.

`read_documents` keeps them in the metadata: "pages" has the offset at which each page begins, "headings" has
[offset, level, title] of each heading.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precise_rag.structure import read_structure
from precise_rag.structure.blocks import heading_title


class Place(NamedTuple):
    """Where a piece of a document is.

    doc_id: the document's id.
    page: the page or slide on which it begins, from 1; None if the document has none.
    headings: the titles of the headings above it, outermost first.
    """

    doc_id: str
    page: int | None = None
    headings: tuple[str, ...] = ()

    def __str__(self) -> str:
        page = "" if self.page is None else f", page {self.page}"
        return f"{self.doc_id}{page}" + (f": {' › '.join(self.headings)}" if self.headings else "")


def place_of(piece: Any) -> Place:
    """Return the place of a Chunk or Candidate, or of a Passage of an answer.

    Documents that `read_documents` did not make have no pages and headings.
    """
    metadata = piece.metadata
    pages = metadata.get("pages")
    page = (
        bisect_right(pages, piece.start) if isinstance(pages, list | tuple) and _are_offsets(pages) else None
    )
    return Place(piece.doc_id, page or None, _headings(metadata.get("headings"), piece.start))


def places(text: str, pages: Sequence[int] = ()) -> Mapping[str, Any]:
    """Return the metadata that `place_of` reads. pages: the offset of each page, ascending."""
    blocks = read_structure(text, "markdown" if pages else None).blocks
    headings = [
        [block.start, block.level, heading_title(text[block.start : block.end])]
        for block in blocks
        if block.kind == "heading"
    ]
    found: dict[str, Any] = {"headings": headings} if headings else {}
    return {**found, "pages": list(pages)} if pages else found


def _are_offsets(pages: Sequence[Any]) -> bool:
    return all(isinstance(page, int) for page in pages)


def _headings(found: Any, start: int) -> tuple[str, ...]:
    path: list[tuple[int, str]] = []
    try:
        for offset, level, title in found or ():
            if offset > start:
                break
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, str(title)))
    except (TypeError, ValueError):  # metadata of the same name from elsewhere
        return ()
    return tuple(title for _, title in path)
