"""The records of a trace as instrumentation events."""

from typing import Any

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.events import BaseEvent

from precise_rag.trace import CallRecord, Record, RoundRecord, StageRecord

__all__ = ["PreciseCallEvent", "PreciseRoundEvent", "PreciseStageEvent"]
dispatcher = get_dispatcher(__name__)


class _RecordEvent(BaseEvent):
    record: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the event."""
        return cls.__name__


class PreciseStageEvent(_RecordEvent):
    """A stage ended: its settings and time, and each candidate's rank, score, decision and reason."""


class PreciseCallEvent(_RecordEvent):
    """A language model was called: role, prompt version, tokens, milliseconds, cost."""


class PreciseRoundEvent(_RecordEvent):
    """A draft was judged: its score, and the decision that follows."""


_EVENTS = {StageRecord: PreciseStageEvent, CallRecord: PreciseCallEvent, RoundRecord: PreciseRoundEvent}


def observe(record: Record) -> None:
    """Send a record to the handlers of events: the observer for a Trace."""
    heard: Any = dispatcher
    while heard and all(isinstance(handler, NullEventHandler) for handler in heard.event_handlers):
        heard = heard.parent if heard.propagate else None
    if heard:  # what handlers are given of a record takes a while to make
        dispatcher.event(_EVENTS[type(record)](record=record.to_dict()))
