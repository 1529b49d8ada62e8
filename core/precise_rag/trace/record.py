"""The record of one question: what each stage did, and what each model call cost.

A Trace collects records and decides nothing. Exports hold no keys and passwords
(`precise_rag.redaction`). With `include_text=False` they also hold no text of users, documents, prompts
and servers: only ids, scores, decisions, names, counts and times remain.
"""

import asyncio
import json
import logging
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from numbers import Integral, Real
from typing import Any

from precise_rag.excerpts import PieceTokens, no_piece_tokens
from precise_rag.facts import place_at
from precise_rag.redaction import redacted
from precise_rag.titles import new_sections, titles_above
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Excerpt, Judgement, Message, Selection

_log = logging.getLogger(__name__)
_TEXTS = frozenset({"question", "answer", "text", "messages", "judgement_text", "above"})
"""Names of the values that an export without text leaves out."""
_QUOTING = frozenset({"note", "notes", "reason", "error", "decision"})
"""Names of words that may quote a text after a colon or bracket; without text only the part before stays."""
_QUOTES = re.compile(r"(?<!\s)\s*+[:(]")
_DEEPEST, _LARGEST = 12, 2**63
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
            "note": self.note,
            "candidates": decision_records(self.selection),
        }
        return _exported(record, include_text)


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
    overhead_tokens: tokens of the prompt beside the passages and their sources, estimated.
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
    overhead_tokens: int = 0

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Return the record as plain values."""
        record = asdict(self)
        requested_model = record.pop("requested_model")
        if not include_text:  # the name that the server gave is its text
            record["model"] = requested_model or self.model
        record["ms"] = round(self.ms, 3)
        record["messages"] = [message._asdict() for message in self.messages]
        return _exported(record, include_text)


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
        record = {
            "round": self.number,
            "step": self.step,
            "kept": self.kept,
            "score": judged.score if judged else None,
            "adjustment": judged.adjustment if judged else None,
            "judgement": judged.status if judged else None,
            "decision": self.decision,
            "text": self.text,
            "judgement_text": judged.raw if judged else "",
        }
        return _exported(record, include_text)


@dataclass(frozen=True, slots=True)
class ExcerptRecord:
    """An excerpt that was sent, and its estimated tokens with its titles and what is around it."""

    number: int
    excerpt: Excerpt
    tokens: int

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Return the record as plain values."""
        one = self.excerpt
        record = {
            "number": self.number,
            "doc_id": one.doc_id,
            "start": one.start,
            "end": one.end,
            **{"page": None, "time": None, **place_at(one.metadata, one.start)},
            "above": titles_above(one),
            "text": one.text,
            "tokens": self.tokens,
            "sentences": [
                {"start": piece.start, "end": piece.end, "rank": rank, "score": piece.score, "reason": reason}
                for rank, piece, _, reason in one.sentences
            ],
        }
        return _exported(record, include_text)


Record = StageRecord | CallRecord | RoundRecord
"""One entry of a trace, as an observer receives it."""


@dataclass(slots=True)
class OpenStage:
    """A running stage, see `Trace.stage`. Set `outcome`."""

    outcome: Selection | Sequence[Candidate] = ()


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
        of_kind: dict[type, list[Any]]
        of_kind = {StageRecord: self.stages, CallRecord: self.calls, RoundRecord: self.rounds}
        of_kind[type(record)].append(record)
        try:
            if self._observer is not None:
                self._observer(record)
        except Exception:  # the record is of a call that was paid for
            _log.warning("the observer of a trace failed for a %s", type(record).__name__, exc_info=True)

    def send(self, excerpts: Sequence[Excerpt], piece_tokens: PieceTokens = no_piece_tokens) -> None:
        """Set `context`: the excerpts that are sent. piece_tokens: what is written around each."""
        self.context = tuple(
            ExcerptRecord(number, one, piece_tokens(one) + sum(map(estimate_tokens, (one.text, *titles))))
            for number, (one, titles) in enumerate(zip(excerpts, new_sections(excerpts), strict=True), 1)
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
        outcome = stage.outcome
        selection = outcome if isinstance(outcome, Selection) else Selection.keep_all(outcome, "candidate")
        self.add(StageRecord(name, selection, ms, settings, round))

    def to_dict(self, include_text: bool = True) -> dict[str, Any]:
        """Return the whole trace as plain values; the records of each kind are in the order of events."""
        record = {
            "schema": SCHEMA_VERSION,
            "question": self.question,
            "answer": self.answer,
            "settings": self.settings,
            "ms": round(self.ms, 3),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usage_estimated": any(call.usage_estimated for call in self.calls),
            "cost": self.cost,
            "notes": self.notes,
        }
        return _exported(record, include_text) | {
            "context": [excerpt.to_dict(include_text) for excerpt in self.context],
            "stages": [stage.to_dict(include_text) for stage in self.stages],
            "rounds": [turn.to_dict(include_text) for turn in self.rounds],
            "calls": [call.to_dict(include_text) for call in self.calls],
        }

    def to_json(self, include_text: bool = True, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON that can be written as UTF-8: lone surrogates are escaped."""
        text = json.dumps(self.to_dict(include_text), ensure_ascii=False, indent=indent, allow_nan=False)
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def to_html(self, include_text: bool = True) -> str:
        """Return an HTML page: the question, what was sent, and the scores with their cut."""
        from precise_rag.trace.html import trace_page  # and a library for it

        return trace_page(self.to_dict(include_text))


def decision_records(selection: Selection) -> list[dict[str, Any]]:
    """Return the decisions of a selection as plain values."""
    names = ("id", "doc_id", "start", "end", "score", "score_scale", "scores", "n_tokens", "text")
    return [
        {"rank": decision.rank, "kept": decision.kept, "reason": decision.reason}
        | {name: getattr(decision.candidate, name) for name in names}
        for decision in selection.decisions
    ]


def _exported(record: Mapping[Any, Any], include_text: bool, depth: int = 0) -> dict[str, Any]:
    """The record as values that JSON can represent, without keys and passwords, and perhaps without text."""
    return {
        redacted(_words(name)): _plain(value, name, include_text, depth + 1)
        for name, value in record.items()
        if include_text or name not in _TEXTS
    }


def _plain(value: Any, name: Any, include_text: bool, depth: int) -> Any:
    """A value of a record. Never raises: a number or any other value that JSON lacks becomes a text.

    name: of the value. depth: of the mappings and lists around it; at most `_DEEPEST` of them are shown.
    """
    if isinstance(value, str):
        is_quoting = name in _QUOTING and not include_text
        return redacted(_QUOTES.split(value, maxsplit=1)[0] if is_quoting else str(value))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        if depth > _DEEPEST:
            return f"[{type(value).__name__}]"
        if isinstance(value, Mapping):
            return _exported(value, include_text, depth)
        return [_plain(item, name, include_text, depth + 1) for item in value]
    if isinstance(value, Integral) and -_LARGEST < int(value) < _LARGEST:
        return int(value)
    with suppress(OverflowError, ValueError):
        if isinstance(value, Real) and math.isfinite(value):
            return float(value)
    return redacted(_words(value))


def _words(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # a value whose text cannot be made is shown by its type
        return f"[{type(value).__name__}]"


@asynccontextmanager
async def sent_in_order(
    send: Callable[[Record, dict[str, Any]], Awaitable[None]],
) -> AsyncIterator[Callable[[Record], None]]:
    """Yield the observer for a Trace in asynchronous code; it may be called from any thread.

    send: called on the event loop with one record after another and its `to_dict()`, until the block ends.
    """
    loop = asyncio.get_running_loop()
    records: asyncio.Queue[Record | None] = asyncio.Queue()

    def put(record: Record | None) -> None:
        loop.call_soon_threadsafe(records.put_nowait, record)

    async def send_all() -> None:
        while (record := await records.get()) is not None:
            await send(record, await asyncio.to_thread(record.to_dict))

    sender = loop.create_task(send_all())
    try:
        yield put
    finally:
        put(None)
        await sender
