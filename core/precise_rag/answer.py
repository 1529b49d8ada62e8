"""The answer to a question, and the rounds that led to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from precise_rag.trace import Trace
from precise_rag.types import Judgement, Selection


class Round(NamedTuple):
    """One turn of the feedback loop."""

    min_k: int
    selection: Selection
    text: str
    judgement: Judgement | None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, what it stands on, and how it came about.

    kind: "generated" by a language model, or "context" when none is configured, in which case
    `text` is the selected context itself and nothing was invented. note: why the loop stopped,
    and anything the caller should know.
    """

    text: str
    kind: Literal["generated", "context"]
    selection: Selection
    judgement: Judgement | None = None
    rounds: Sequence[Round] = ()
    note: str = ""
    trace: Trace | None = None
