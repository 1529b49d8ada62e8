"""The answer to a question, and the rounds that led to it."""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from precise_rag.context import Passage
from precise_rag.trace import Trace
from precise_rag.types import Judgement, Selection


class Round(NamedTuple):
    """One round of the feedback loop.

    step: how much more than at first was selected, or less if negative, see `Selector`.
    selection: the candidates kept and dropped.
    text: the draft.
    judgement: the LLM's judgement of the draft, if it was judged.
    problem: what keeps the draft from being an answer, such as a refusal; empty if nothing does.
    """

    step: int
    selection: Selection
    text: str
    judgement: Judgement | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, with the context it is based on.

    kind: "generated" by an LLM; or "context" if no LLM is configured or none of its drafts is an answer.
        `text` is then the selected context, below a sentence that says so if the LLM finds no answer in it.
    selection: the candidates kept and dropped.
    judgement: the LLM's judgement of the answer, if it was judged.
    rounds: all rounds of the feedback loop, in order.
    note: why the loop stopped, and warnings.
    trace: the record of every stage.
    question: the question that was answered, as it can be understood without the chat before it.
    passages: what the model saw of the selection, in its order.
    citations: the passages that the answer cites, in the order in which it cites them; empty if it cites
        none. A number without a passage is in `note`.
    choice: the option that the model chose in a multiple-choice question, from 0; None if it chose none.
    """

    text: str
    kind: Literal["generated", "context"]
    selection: Selection
    judgement: Judgement | None = None
    rounds: Sequence[Round] = ()
    note: str = ""
    trace: Trace = field(default_factory=lambda: Trace(""))
    question: str = ""
    passages: Sequence[Passage] = ()
    citations: Sequence[Passage] = ()
    choice: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What is known about the answer, as JSON values.

        question, kind, citations (number, doc_id, start, end and text of each), choice, score (the judge's,
        from 1 to 10, or None), note and trace.
        """
        names = ("number", "doc_id", "start", "end", "text")
        cited = [{name: getattr(passage, name) for name in names} for passage in self.citations]
        return {
            "question": self.question,
            "kind": self.kind,
            "citations": cited,
            "choice": self.choice,
            "score": self.judgement.score if self.judgement else None,
            "note": self.note,
            "trace": self.trace.to_dict(),
        }

    @property
    def pieces(self) -> list[str]:
        """The text in pieces of a word each, for streams."""
        return re.findall(r"\S+\s*|\s+", self.text)


def in_pieces(items: Iterator[str | Answer]) -> Iterator[str | Answer]:
    """Yield what was shown live, or else the text of the answer in pieces, then the Answer."""
    for place, item in enumerate(items):
        yield from _shown(item, place)


async def ain_pieces(items: AsyncGenerator[str | Answer, None]) -> AsyncGenerator[str | Answer, None]:
    """`in_pieces` for an asynchronous generator, which is closed at the end."""
    async with aclosing(items):
        place = 0
        async for item in items:
            for piece in _shown(item, place):
                yield piece
            place += 1


def _shown(item: str | Answer, place: int) -> list[str | Answer]:
    return [*item.pieces, item] if isinstance(item, Answer) and place == 0 else [item]
