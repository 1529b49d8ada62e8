"""The records of a trace, as custom events for LangChain's callbacks."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event

from precise_rag.trace import CallRecord, Record, RoundRecord, StageRecord
from precise_rag.trace.sending import sent_in_order

STAGE_EVENT = "precise_rag_stage"
"""A stage ended: its settings and time, and each candidate's rank, score, decision and reason."""

CALL_EVENT = "precise_rag_call"
"""A language model was called: role, prompt version, tokens, milliseconds, cost."""

ROUND_EVENT = "precise_rag_round"
"""A draft was judged: its score, and the decision that follows."""

_EVENTS: dict[type[Record], str] = {
    StageRecord: STAGE_EVENT,
    CallRecord: CALL_EVENT,
    RoundRecord: ROUND_EVENT,
}


def observe(record: Record) -> None:
    """Send a record to the callbacks of the current run: the observer for a Trace in synchronous code."""
    dispatch_custom_event(_EVENTS[type(record)], record.to_dict())


def observing() -> AbstractAsyncContextManager[Callable[[Record], None]]:
    """Return the same for asynchronous code, see `sent_in_order`."""
    return sent_in_order(lambda record: adispatch_custom_event(_EVENTS[type(record)], record.to_dict()))
