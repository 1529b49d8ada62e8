"""The record of one question: what each stage did, and what each model call cost.

A Trace collects records and decides nothing. Exports hold no keys and passwords
(`precise_rag.redaction`). With `include_text=False` they also hold no text of users, documents, prompts
and servers: only ids, scores, decisions, names, counts and times remain.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from precise_rag.excerpts import PieceTokens, no_piece_tokens
from precise_rag.pages import page_at
from precise_rag.titles import joined_titles, new_sections, titles_above
from precise_rag.tokens import estimate_tokens
from precise_rag.trace.html import trace_page
from precise_rag.trace.plain import plain, to_json
from precise_rag.types import Candidate, Decision, Excerpt, Judgement, Message, Selection

_log = logging.getLogger(__name__)

_QUOTES = re.compile(r"(?<!\s)\s*+[:(]")

SCHEMA_VERSION = 1
"""Version of the form of `Trace.to_dict`."""


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One stage: its settings, its time and a decision for each candidate.

    round: the feedback round, from 1; None before the first.
    note: a remark for people, for example which limit was reached.
    """

    name: str
    selection: Selection
    ms: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    round: int | None = None
    note: str = ""

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Return the record as plain values."""
        record = {
            "stage": self.name,
            "round": self.round,
            "ms": round(self.ms, 3),
            "settings": self.settings,
            "note": _without_text(self.note, include_text),
            "candidates": [_decision(decision, include_text) for decision in self.selection.decisions],
        }
        return _plain_record(record)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a language model.

    role: what the call was for, such as "answer" or "judge".
    usage_estimated: whether the tokens are estimated because the server did not report them.
    cost: dollars; None if the model has no price.
    error: why the call failed; empty if it did not.
    round: the feedback round, from 1; None before the first.
    messages, text: the prompt and the reply, or the part of it that arrived before the call failed.
    requested_model: name of the model that was asked, if a server answered under another name.
    cut_off: why the reply ends early: "length" or "content_filter"; empty if it does not.
    """

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
    requested_model: str = ""
    cut_off: str = ""

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Return the record as plain values."""
        record: dict[str, Any] = {
            "role": self.role,
            "round": self.round,
            "prompt_version": self.prompt_version,
            "model": self.model if include_text else self.requested_model or self.model,
            "ms": round(self.ms, 3),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usage_estimated": self.usage_estimated,
            "cost": self.cost,
            "error": _without_text(self.error, include_text),
            "cut_off": self.cut_off,
        }
        if include_text:
            record["messages"] = [message._asdict() for message in self.messages]
            record["text"] = self.text
        return _plain_record(record)


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round of the feedback loop.

    number: of the round, from 1. step: of the selection, see `Selector`. kept: ids of the candidates in the
    context. judgement: None if the draft was not judged. decision: what the loop did next, and why. text:
    the draft.
    """

    number: int
    step: int
    kept: tuple[str, ...]
    judgement: Judgement | None
    decision: str
    text: str = ""

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Return the record as plain values."""
        judged = self.judgement
        record: dict[str, Any] = {
            "round": self.number,
            "step": self.step,
            "kept": list(self.kept),
            "score": judged.score if judged else None,
            "adjustment": judged.adjustment if judged else None,
            "judgement": judged.status if judged else None,
            "decision": _without_text(self.decision, include_text),
        }
        if include_text:
            record["text"] = self.text
            record["judgement_text"] = judged.raw if judged else ""
        return _plain_record(record)


@dataclass(frozen=True, slots=True)
class ExcerptRecord:
    """An excerpt that was sent.

    number: from 1. title_tokens: of the titles that are written above it. around_tokens: what a framework or
    prompt writes around it.
    """

    number: int
    excerpt: Excerpt
    title_tokens: int = 0
    around_tokens: int = 0

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Return the record as plain values."""
        one = self.excerpt
        record: dict[str, Any] = {
            "number": self.number,
            "doc_id": one.doc_id,
            "start": one.start,
            "end": one.end,
            "page": page_at(one.metadata, one.start),
            "above": [],
            "tokens": {
                "text": estimate_tokens(one.text),
                "titles": self.title_tokens,
                "around": self.around_tokens,
            },
            "sentences": [
                {
                    "start": decision.candidate.start,
                    "end": decision.candidate.end,
                    "rank": decision.rank,
                    "score": decision.candidate.score,
                    "reason": _without_text(decision.reason, include_text),
                }
                for decision in one.sentences
            ],
        }
        if include_text:
            record |= {"text": one.text, "above": list(titles_above(one))}
        return _plain_record(record)


Record = StageRecord | CallRecord | RoundRecord
"""One entry of a trace, as an observer receives it."""


@dataclass(slots=True)
class OpenStage:
    """A running stage, see `Trace.stage`. Set `outcome`, and `note` if there is something to say."""

    outcome: Selection | Sequence[Candidate] = ()
    note: str = ""


class Trace:
    """The record of one question.

    question: its text.
    observer: function that is called with each record as soon as it is added. If a stage runs in a
        worker thread (the search of asynchronous methods), it is called in that thread.

    The code that creates the trace sets `settings` (of the whole run) and `answer` (the final text).
    `context` has the excerpts that were sent, see `send`.
    """

    def __init__(self, question: str, *, observer: Callable[[Record], None] | None = None) -> None:
        self.question = question
        self.stages: list[StageRecord] = []
        self.calls: list[CallRecord] = []
        self.rounds: list[RoundRecord] = []
        self.context: tuple[ExcerptRecord, ...] = ()
        self.notes: list[str] = []
        self.settings: dict[str, Any] = {}
        self.answer = ""
        self._observer = observer

    @property
    def input_tokens(self) -> int:
        """Number of tokens of all prompts."""
        return sum(call.input_tokens for call in self.calls)

    @property
    def output_tokens(self) -> int:
        """Number of tokens of all replies."""
        return sum(call.output_tokens for call in self.calls)

    @property
    def cost(self) -> float | None:
        """Dollars for all calls; None if a call that used tokens has no price."""
        costs = [call.cost for call in self.calls if call.input_tokens or call.output_tokens]
        return sum(cost for cost in costs if cost is not None) if None not in costs else None

    @property
    def ms(self) -> float:
        """Sum of the milliseconds of all stages and calls."""
        return sum(stage.ms for stage in self.stages) + sum(call.ms for call in self.calls)

    def add(self, record: Record) -> None:
        """Add a record and pass it to the observer. An exception of the observer is logged, not raised."""
        match record:
            case StageRecord():
                self.stages.append(record)
            case CallRecord():
                self.calls.append(record)
            case RoundRecord():
                self.rounds.append(record)
        if self._observer is None:
            return
        try:
            self._observer(record)
        except Exception:  # the record is of a call that was paid for
            _log.warning("the observer of a trace failed for a %s", type(record).__name__, exc_info=True)

    def send(self, excerpts: Sequence[Excerpt], piece_tokens: PieceTokens = no_piece_tokens) -> None:
        """Set `context`: the excerpts that are sent. piece_tokens: what is written around each."""
        self.context = tuple(
            ExcerptRecord(
                number,
                excerpt,
                estimate_tokens(joined_titles(titles)),
                piece_tokens(excerpt),
            )
            for number, (excerpt, titles) in enumerate(zip(excerpts, new_sections(excerpts), strict=True), 1)
        )

    @contextmanager
    def stage(self, name: str, *, round: int | None = None, **settings: Any) -> Iterator[OpenStage]:
        """Time a stage and add its record. A stage that raises leaves no record.

        Set `outcome` of the yielded stage inside the block.
        """
        stage = OpenStage()
        started = time.perf_counter()
        yield stage
        ms = (time.perf_counter() - started) * 1e3
        self.add(StageRecord(name, _selection(stage.outcome), ms, settings, round, stage.note))

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Return the whole trace as plain values; the records of each kind are in the order of events."""
        record: dict[str, Any] = {"schema": SCHEMA_VERSION}
        if include_text:
            record |= {"question": self.question, "answer": self.answer}
        record |= {
            "settings": self.settings,
            "ms": round(self.ms, 3),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usage_estimated": any(call.usage_estimated for call in self.calls),
            "cost": self.cost,
            "notes": [_without_text(note, include_text) for note in self.notes],
        }
        return _plain_record(record) | {
            "context": [excerpt.to_dict(include_text) for excerpt in self.context],
            "stages": [stage.to_dict(include_text) for stage in self.stages],
            "rounds": [turn.to_dict(include_text) for turn in self.rounds],
            "calls": [call.to_dict(include_text) for call in self.calls],
        }

    def to_json(self, include_text: bool = True, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON. Values that JSON cannot represent become strings."""
        return to_json(self.to_dict(include_text), indent=indent)

    def to_html(self, include_text: bool = True) -> str:
        """Return an HTML page: the question, what was sent, and the scores with their cut."""
        return trace_page(self.to_dict(include_text))


def _plain_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record as plain values without keys and passwords."""
    return {name: plain(value) for name, value in record.items()}


def _without_text(words: str, include_text: bool) -> str:
    """Return `words`; without text, only the part before a colon or bracket, since the rest may quote."""
    return words if include_text else _QUOTES.split(words, maxsplit=1)[0]


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
        "scores": candidate.scores,
        "n_tokens": candidate.n_tokens,
        "kept": decision.kept,
        "reason": _without_text(decision.reason, include_text),
    }
    if include_text:
        record["text"] = candidate.text
    return record
