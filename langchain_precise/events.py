"""The records of a trace, as custom events for LangChain's callbacks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event

from precise_rag.trace import CallRecord, Record, RoundRecord, StageRecord

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


@asynccontextmanager
async def observing() -> AsyncIterator[Callable[[Record], None]]:
    """Yield the observer for a Trace in asynchronous code; it may be called from any thread.

    Records are sent in order, on the event loop. When the block ends, all of them have been sent.
    """
    loop = asyncio.get_running_loop()
    records: asyncio.Queue[Record | None] = asyncio.Queue()

    def put(record: Record | None) -> None:
        loop.call_soon_threadsafe(records.put_nowait, record)

    async def send() -> None:
        while (record := await records.get()) is not None:
            await adispatch_custom_event(_EVENTS[type(record)], record.to_dict())

    sender = loop.create_task(send())
    try:
        yield put
    finally:
        put(None)
        await sender
