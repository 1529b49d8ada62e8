"""What a model sees of a selection: its excerpts as numbered passages, with their titles and headings."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

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
class Passage(Excerpt):
    """An excerpt under the number by which the model sees and cites it, from 1."""

    number: int = 0

    @property
    def titles(self) -> Titles:
        """What stands above it: the document's title and the path of headings."""
        return titles_above(self)

    @property
    def pieces(self) -> tuple[Candidate, ...]:
        """The selected sentences in it, in the order of the text."""
        return tuple(decision.candidate for decision in self.sentences)


def context_passages(selection: Selection, order: Order = "document") -> tuple[Passage, ...]:
    """Return the passages that a model sees, numbered from 1: the excerpts of a selection."""
    names = [field.name for field in fields(Excerpt)]
    return tuple(
        Passage(**{name: getattr(excerpt, name) for name in names}, number=number)
        for number, excerpt in enumerate(excerpts_of(selection, order, passage_tokens), start=1)
    )


def shown_passages(excerpts: Sequence[Excerpt]) -> list[Shown]:
    """Return each excerpt as a prompt shows it: with its heading where another one begins."""
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
        prompt = wording.answer(question, shown_passages(excerpts), options)
        return [prompt.messages[1].content.partition(f"{prompt.mark} question\n")[0]]

    return Form(texts, passage_tokens)


def passage_tokens(piece: Candidate) -> int:
    """Return the tokens that a prompt of ours writes around a passage, beside its source."""
    return _AROUND_PASSAGE
