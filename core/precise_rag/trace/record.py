"""What every stage did with one question, and what it cost.

A Trace only collects; it decides nothing. Everything in it can be exported without the texts that
users and documents wrote (`include_text=False`): then it holds ids, scores, decisions, names, counts
and times alone.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from precise_rag.types import Candidate, Decision, Judgement, Message, Selection
from precise_rag.viz.trace_page import trace_page

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One stage: its settings (thresholds among them), its time and a decision per candidate.

    round: the feedback round it belongs to, from 1, or None before the first.
    """

    name: str
    selection: Selection
    ms: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    round: int | None = None
    note: str = ""

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Plain values."""
        return {
            "stage": self.name,
            "round": self.round,
            "ms": round(self.ms, 3),
            "settings": dict(self.settings),
            "note": _said(self.note, include_text),
            "candidates": [_decision(decision, include_text) for decision in self.selection.decisions],
        }


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a language model. cost is in dollars, None where the model has no price."""

    role: str
    prompt_version: str
    model: str
    ms: float
    input_tokens: int = 0
    output_tokens: int = 0
    usage_estimated: bool = False
    cost: float | None = None
    error: str = ""
    round: int | None = None
    messages: Sequence[Message] = ()
    text: str = ""

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Plain values."""
        record: dict[str, Any] = {
            "role": self.role,
            "round": self.round,
            "prompt_version": self.prompt_version,
            "model": self.model,
            "ms": round(self.ms, 3),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usage_estimated": self.usage_estimated,
            "cost": self.cost,
            "error": _said(self.error, include_text),
        }
        if include_text:
            record["messages"] = [message._asdict() for message in self.messages]
            record["text"] = self.text
        return record


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One turn of the feedback loop, and what was decided after it."""

    number: int
    min_k: int
    kept: tuple[str, ...]
    judgement: Judgement | None
    decision: str
    text: str = ""

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Plain values."""
        judged = self.judgement
        record: dict[str, Any] = {
            "round": self.number,
            "min_k": self.min_k,
            "kept": list(self.kept),
            "score": judged.score if judged else None,
            "adjustment": judged.adjustment if judged else None,
            "judgement": judged.status if judged else None,
            "decision": _said(self.decision, include_text),
        }
        if include_text:
            record["text"] = self.text
            record["judgement_text"] = judged.raw if judged else ""
        return record


Record = StageRecord | CallRecord | RoundRecord


@dataclass(slots=True)
class OpenStage:
    """A stage that is running: give it its outcome, and a note if there is something to say."""

    outcome: Selection | Sequence[Candidate] = ()
    note: str = ""


class Trace:
    """The record of one question.

    observer: called with every record at the moment it is made; callbacks and events hang here. Where
    a stage runs in a worker thread (searching, in asynchronous methods), it is called there.
    settings: of the whole run, for whoever makes the trace to fill. answer: the text in the end.
    """

    def __init__(self, question: str, *, observer: Callable[[Record], None] | None = None) -> None:
        self.question = question
        self.stages: list[StageRecord] = []
        self.calls: list[CallRecord] = []
        self.rounds: list[RoundRecord] = []
        self.notes: list[str] = []
        self.settings: dict[str, Any] = {}
        self.answer = ""
        self._observer = observer

    @property
    def input_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(call.input_tokens for call in self.calls)

    @property
    def output_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(call.output_tokens for call in self.calls)

    @property
    def cost(self) -> float | None:
        """Dollars for all calls, or None if a call that used tokens has no price."""
        costs = [call.cost for call in self.calls if call.input_tokens or call.output_tokens]
        return sum(cost for cost in costs if cost is not None) if None not in costs else None

    @property
    def ms(self) -> float:
        """Milliseconds of all stages and calls together."""
        return sum(stage.ms for stage in self.stages) + sum(call.ms for call in self.calls)

    def add(self, record: Record) -> None:
        """Keep a record, and show it to the observer."""
        match record:
            case StageRecord():
                self.stages.append(record)
            case CallRecord():
                self.calls.append(record)
            case RoundRecord():
                self.rounds.append(record)
        if self._observer is not None:
            self._observer(record)

    @contextmanager
    def stage(self, name: str, *, round: int | None = None, **settings: Any) -> Iterator[OpenStage]:
        """Time a stage: set `outcome` inside the block. A stage that raises leaves no record."""
        stage = OpenStage()
        started = time.perf_counter()
        yield stage
        ms = (time.perf_counter() - started) * 1e3
        self.add(StageRecord(name, _selection(stage.outcome), ms, settings, round, stage.note))

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """The whole record as plain values, in the order of events within each kind."""
        record: dict[str, Any] = {"schema": SCHEMA_VERSION}
        if include_text:
            record |= {"question": self.question, "answer": self.answer}
        return record | {
            "settings": self.settings,
            "ms": round(self.ms, 3),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usage_estimated": any(call.usage_estimated for call in self.calls),
            "cost": self.cost,
            "notes": [_said(note, include_text) for note in self.notes],
            "stages": [stage.to_dict(include_text) for stage in self.stages],
            "rounds": [turn.to_dict(include_text) for turn in self.rounds],
            "calls": [call.to_dict(include_text) for call in self.calls],
        }

    def to_json(self, include_text: bool = True, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON. Values that JSON does not know appear as their text."""
        return json.dumps(self.to_dict(include_text), ensure_ascii=False, indent=indent, default=str)

    def to_html(self, include_text: bool = True) -> str:
        """One page that needs nothing but itself: the answer, score curves with the cut, rounds, cost."""
        return trace_page(self.to_dict(include_text))


def _said(words: str, include_text: bool) -> str:
    """`words`, or what stands before their first colon: what a server said may quote the user."""
    return words if include_text else words.partition(":")[0]


def _selection(outcome: Selection | Sequence[Candidate]) -> Selection:
    if isinstance(outcome, Selection):
        return outcome
    return Selection.keep_all(outcome, "candidate")


def _decision(decision: Decision, include_text: bool) -> dict[str, Any]:
    candidate = decision.candidate
    record: dict[str, Any] = {
        "rank": decision.rank,
        "id": candidate.id,
        "score": candidate.score,
        "score_scale": candidate.score_scale,
        "scores": dict(candidate.scores),
        "n_tokens": candidate.n_tokens,
        "kept": decision.kept,
        "reason": decision.reason,
    }
    if include_text:
        record["text"] = candidate.text
    return record
