"""The records of a trace, as custom events for LangChain's callbacks."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables.config import ensure_config, get_callback_manager_for_config

from precise_rag.trace import CallRecord, Record, RoundRecord, StageRecord
from precise_rag.trace.record import sent_in_order

STAGE_EVENT = "precise_rag_stage"
"""A stage ended: its settings and time, and each candidate's rank, score, decision and reason."""
CALL_EVENT = "precise_rag_call"
"""A language model was called: role, prompt version, tokens, milliseconds, cost."""
ROUND_EVENT = "precise_rag_round"
"""A draft was judged: its score, and the decision that follows."""
_EVENTS = {StageRecord: STAGE_EVENT, CallRecord: CALL_EVENT, RoundRecord: ROUND_EVENT}


def _is_heard() -> bool:
    """Whether the current run has callbacks; what they are given of a record takes a while to make."""
    return bool(get_callback_manager_for_config(ensure_config()).handlers)


def observe(record: Record) -> None:
    """Send a record to the callbacks of the current run: the observer for a Trace in synchronous code."""
    if _is_heard():
        dispatch_custom_event(_EVENTS[type(record)], record.to_dict())


def observing() -> AbstractAsyncContextManager[Callable[[Record], None] | None]:
    """Return the same for asynchronous code, see `sent_in_order`; None if nobody listens."""
    send = sent_in_order(lambda record, data: adispatch_custom_event(_EVENTS[type(record)], data))
    return send if _is_heard() else nullcontext()
