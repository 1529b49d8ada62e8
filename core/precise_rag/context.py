"""What a model sees of the selected pieces: passages in reading order, with their titles and headings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from precise_rag.prompts import Shown
from precise_rag.structure.marks import begins_line, ends_line
from precise_rag.titles import joined_titles, titles_above
from precise_rag.types import Candidate, Titles

Order = Literal["document", "score"]
"""Order of the passages: "document" puts the pieces of each document in the order of its text, the
document with the best piece first, and joins neighbours; "score" leaves the pieces as they are ranked."""

UNTITLED = "untitled"
"""Source of a passage without a heading that follows one with a heading."""

_SOURCE_LENGTH = 200
_WIDEST_GAP = 3
"""Most characters between pieces that are joined: spaces and line breaks; a sentence is longer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document as the model sees it: one selected piece, or several that were joined.

    number: the number under which it is shown and cited, from 1.
    doc_id: the document's id.
    start, end: offsets in the document's text.
    text: the text, with the pieces' own words.
    titles: what stands above it: the document's title and the path of headings.
    pieces: the selected pieces that it was made of.
    """

    number: int
    doc_id: str
    start: int
    end: int
    text: str
    titles: Titles = ()
    pieces: tuple[Candidate, ...] = ()


def context_passages(kept: Iterable[Candidate], order: Order = "document") -> tuple[Passage, ...]:
    """Return the passages that a model sees, numbered from 1.

    kept: the selected pieces, best first.
    order: see `Order`.
    Two pieces are joined if the second begins inside the first and the texts agree, or right after it.
    Line breaks come between them, one for each character of the gap; or one space where the marks of both
    allow a line to go on. The white space of the document may differ.
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
    above = [(), *(passage.titles for passage in passages)]
    return [
        Shown(passage.text, "" if passage.titles == before else source_of(passage.titles))
        for before, passage in zip(above, passages, strict=False)
    ]


def source_of(titles: Titles) -> str:
    """Return titles as a prompt names a source, the innermost whole: at most 200 characters."""
    return joined_titles(titles)[-_SOURCE_LENGTH:] or UNTITLED


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
        return agrees and titles_above(piece) == titles_above(self.pieces[0])

    def add(self, piece: Candidate) -> None:
        self.pieces.append(piece)
        gap = piece.start - self.end
        in_line = gap == 1 and not begins_line(piece.text) and not ends_line(self.text)
        self.text += " " if in_line else "\n" * gap
        self.text += piece.text[max(0, self.end - piece.start) :]

    def passage(self, number: int) -> Passage:
        first, last = self.pieces[0], max(self.pieces, key=lambda piece: piece.end)
        titles = titles_above(first)
        return Passage(number, first.doc_id, first.start, last.end, self.text, titles, tuple(self.pieces))


def _in_text_order(pieces: Iterable[Candidate]) -> list[_Joined]:
    groups: list[_Joined] = []
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.end)):
        if groups and groups[-1].continues(piece):
            groups[-1].add(piece)
        else:
            groups.append(_Joined([piece], piece.text))
    return groups
