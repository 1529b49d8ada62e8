"""Instrumentation events that carry the facts of a trace as they come about."""

from collections.abc import Callable
from typing import Any

from llama_index.core.instrumentation import Dispatcher
from llama_index.core.instrumentation.events import BaseEvent

from precise_rag.trace import CallRecord, Record, RoundRecord, StageRecord


class PreciseStageEvent(BaseEvent):
    """A stage has decided: its settings, and per candidate rank, score, kept or dropped, and why."""

    record: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "PreciseStageEvent"


class PreciseCallEvent(BaseEvent):
    """A language model was called: role, prompt version, tokens, milliseconds, cost."""

    record: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "PreciseCallEvent"


class PreciseRoundEvent(BaseEvent):
    """A feedback round is over: its score, and what follows from it."""

    record: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "PreciseRoundEvent"


_EVENTS = {
    StageRecord: PreciseStageEvent,
    CallRecord: PreciseCallEvent,
    RoundRecord: PreciseRoundEvent,
}


def trace_events(dispatcher: Dispatcher) -> Callable[[Record], None]:
    """An observer for a Trace that sends each record through `dispatcher`."""

    def observe(record: Record) -> None:
        dispatcher.event(_EVENTS[type(record)](record=record.to_dict()))

    return observe
