"""What a model sees of the selected pieces: passages in reading order, with their titles and headings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from precise_rag.prompts import Shown
from precise_rag.structure.marks import begins_line, ends_line
from precise_rag.types import Candidate

Order = Literal["document", "score"]
"""Order of the passages: "document" puts the pieces of each document in the order of its text, the
document with the best piece first, and joins neighbours; "score" leaves the pieces as they are ranked."""

UNTITLED = "untitled"
"""Source of a passage without a heading that follows one with a heading."""

_HEADING_LENGTH = 200
_WIDEST_GAP = 3
"""Most characters between pieces that are joined: spaces and line breaks; a sentence is longer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document as the model sees it: one selected piece, or several that were joined.

    number: the number under which it is shown and cited, from 1.
    doc_id: the document's id.
    start, end: offsets in the document's text.
    text: the text, with the pieces' own words.
    heading: the document's title and the path of headings, from the metadata keys "title" and
        "header_path"; empty without them.
    pieces: the selected pieces that it was made of.
    """

    number: int
    doc_id: str
    start: int
    end: int
    text: str
    heading: str = ""
    pieces: tuple[Candidate, ...] = ()


def context_passages(kept: Iterable[Candidate], order: Order = "document") -> tuple[Passage, ...]:
    """Return the passages that a model sees, numbered from 1.

    kept: the selected pieces, best first.
    order: see `Order`.
    Two pieces are joined if the second begins inside the first, and the texts agree, or right after it.
    Between them come as many line breaks as there are characters, or one space where the marks of both
    allow a line to go on; the white space of the document may differ.
    """
    if order == "score":
        parts = [_Joined([piece], piece.text) for piece in kept]
    else:
        documents: dict[str, list[Candidate]] = {}
        for piece in kept:
            documents.setdefault(piece.doc_id, []).append(piece)
        parts = [part for pieces in documents.values() for part in _in_text_order(pieces)]
    return tuple(part.passage(number) for number, part in enumerate(parts, start=1))


def shown_passages(passages: Sequence[Passage]) -> list[Shown]:
    """Return each passage as a prompt shows it: with its heading where another one begins."""
    above = ["", *(passage.heading for passage in passages)]
    return [
        Shown(passage.text, "" if passage.heading == before else passage.heading or UNTITLED)
        for before, passage in zip(above, passages, strict=False)
    ]


def heading_of(metadata: Mapping[str, Any]) -> str:
    """Return the title and the path of headings in a document's metadata as one line.

    "title" is a string; "header_path" is a list of headings, or one string with slashes between them.
    """
    path = metadata.get("header_path")
    steps = path.split("/") if isinstance(path, str) else path if isinstance(path, list | tuple) else ()
    names = [" ".join(name.split()) for name in (metadata.get("title"), *steps) if isinstance(name, str)]
    distinct = dict.fromkeys(name for name in names if name)
    return " › ".join(distinct)[:_HEADING_LENGTH]


@dataclass(slots=True)
class _Joined:
    """Pieces of one document that follow each other, and their text."""

    pieces: list[Candidate]
    text: str

    @property
    def start(self) -> int:
        return self.pieces[0].start

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def continues(self, piece: Candidate) -> bool:
        """Whether a piece continues the text; the offsets of other libraries may not mean that."""
        exact = all(len(one.text) == one.end - one.start for one in (self.pieces[0], piece))
        if not exact or piece.start > self.end + _WIDEST_GAP:
            return False
        shared = self.text[piece.start - self.start :]
        agrees = shared.startswith(piece.text) or piece.text.startswith(shared)
        return agrees and heading_of(piece.metadata) == heading_of(self.pieces[0].metadata)

    def add(self, piece: Candidate) -> None:
        self.pieces.append(piece)
        gap = piece.start - self.end
        in_line = gap == 1 and not begins_line(piece.text) and not ends_line(self.text)
        self.text += " " if in_line else "\n" * gap
        self.text += piece.text[max(0, self.end - piece.start) :]

    def passage(self, number: int) -> Passage:
        first, last = self.pieces[0], max(self.pieces, key=lambda piece: piece.end)
        heading = heading_of(first.metadata)
        return Passage(number, first.doc_id, first.start, last.end, self.text, heading, tuple(self.pieces))


def _in_text_order(pieces: Iterable[Candidate]) -> list[_Joined]:
    groups: list[_Joined] = []
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.end)):
        if groups and groups[-1].continues(piece):
            groups[-1].add(piece)
        else:
            groups.append(_Joined([piece], piece.text))
    return groups
