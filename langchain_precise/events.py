"""What the core records, as custom events for LangChain's callbacks."""

from langchain_core.callbacks import dispatch_custom_event

from precise_rag.trace import CallRecord, Record, RoundRecord, StageRecord

STAGE_EVENT = "precise_rag_stage"
"""A stage ended: its time, and every candidate with its score, kept or dropped, and why."""

CALL_EVENT = "precise_rag_call"
"""A language model was called: prompt version, tokens, time, cost."""

ROUND_EVENT = "precise_rag_round"
"""A draft was judged: the score, and what follows from it."""

_NAMES = {StageRecord: STAGE_EVENT, CallRecord: CALL_EVENT, RoundRecord: ROUND_EVENT}


def observe(record: Record) -> None:
    """Send a record to the callbacks of the current run; the observer for a Trace inside a Runnable."""
    dispatch_custom_event(_NAMES[type(record)], record.to_dict())
