"""The answer to a question, and the rounds that led to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from precise_rag.trace import Trace
from precise_rag.types import Judgement, Selection


class Round(NamedTuple):
    """One round of the feedback loop.

    min_k: the selector's min_k in this round.
    selection: the candidates kept and dropped.
    text: the answer.
    judgement: the LLM's judgement of the answer, if it was judged.
    """

    min_k: int
    selection: Selection
    text: str
    judgement: Judgement | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, with the context it is based on.

    text: the answer.
    kind: "generated" by an LLM; or "context" if no LLM is configured, and `text` is the selected context.
    selection: the candidates kept and dropped.
    judgement: the LLM's judgement of the answer, if it was judged.
    rounds: all rounds of the feedback loop, in order.
    note: why the loop stopped, and warnings.
    trace: the record of every stage, if one was made.
    """

    text: str
    kind: Literal["generated", "context"]
    selection: Selection
    judgement: Judgement | None = None
    rounds: Sequence[Round] = ()
    note: str = ""
    trace: Trace | None = None
