"""What a model sees of a selection: its excerpts as numbered passages, with their titles and headings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from precise_rag.excerpts import Form, Order, excerpts_of
from precise_rag.prompts import Shown, Wording
from precise_rag.titles import joined_titles, new_sections, titles_above, titles_at_end
from precise_rag.types import Candidate, Excerpt, Selection, Titles

UNTITLED = "untitled"
"""Source of a passage without a heading that follows one with a heading."""

_SOURCE_LENGTH = 200
_AROUND_PASSAGE = 7
"""Tokens of a mark, a number, and the ends of lines."""


@dataclass(frozen=True, slots=True)
class Passage:
    """An excerpt under the number by which the model sees and cites it, from 1."""

    number: int
    excerpt: Excerpt

    @property
    def doc_id(self) -> str:
        """The document's id."""
        return self.excerpt.doc_id

    @property
    def start(self) -> int:
        """Offset of the first character in the document's text."""
        return self.excerpt.start

    @property
    def end(self) -> int:
        """Offset behind the last character in the document's text."""
        return self.excerpt.end

    @property
    def text(self) -> str:
        """The document's text from start to end."""
        return self.excerpt.text

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The document's metadata."""
        return self.excerpt.metadata

    @property
    def titles(self) -> Titles:
        """What stands above it: the document's title and the path of headings."""
        return titles_above(self.excerpt)

    @property
    def pieces(self) -> tuple[Candidate, ...]:
        """The selected sentences in it, in the order of the text."""
        return tuple(decision.candidate for decision in self.excerpt.sentences)


def context_passages(selection: Selection, order: Order = "document") -> tuple[Passage, ...]:
    """Return the passages that a model sees, numbered from 1: the excerpts of a selection."""
    return _numbered(excerpts_of(selection, order, passage_tokens))


def _numbered(excerpts: Sequence[Excerpt]) -> tuple[Passage, ...]:
    return tuple(Passage(number, excerpt) for number, excerpt in enumerate(excerpts, start=1))


def shown_passages(passages: Sequence[Passage]) -> list[Shown]:
    """Return each passage as a prompt shows it: with its heading where another one begins."""
    excerpts = [passage.excerpt for passage in passages]
    above = [(), *map(titles_at_end, excerpts)]
    return [
        Shown(one.text, source_of(titles) if titles or (before and not titles_above(one)) else "")
        for before, one, titles in zip(above, excerpts, new_sections(excerpts), strict=False)
    ]


def source_of(titles: Titles) -> str:
    """Return titles as a prompt names a source, the innermost whole: at most 200 characters."""
    return joined_titles(titles)[-_SOURCE_LENGTH:] or UNTITLED


def prompt_form(question: str, options: Sequence[str] = ()) -> Form:
    """Return the form of the prompt that asks for an answer: what it says before the question."""
    wording = Wording().for_options(options)

    def texts(excerpts: Sequence[Excerpt]) -> list[str]:
        prompt = wording.answer(question, shown_passages(_numbered(excerpts)), options)
        return [prompt.messages[1].content.partition(f"{prompt.mark} question\n")[0]]

    return Form(texts, passage_tokens)


def passage_tokens(piece: Candidate) -> int:
    """Return the tokens that a prompt of ours writes around a passage, beside its source."""
    return _AROUND_PASSAGE
