"""What the core records, as custom events for LangChain's callbacks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event

from precise_rag.trace import CallRecord, Record, RoundRecord, StageRecord

STAGE_EVENT = "precise_rag_stage"
"""A stage ended: its time, and every candidate with its score, kept or dropped, and why."""

CALL_EVENT = "precise_rag_call"
"""A language model was called: prompt version, tokens, time, cost."""

ROUND_EVENT = "precise_rag_round"
"""A draft was judged: the score, and what follows from it."""

_NAMES = {StageRecord: STAGE_EVENT, CallRecord: CALL_EVENT, RoundRecord: ROUND_EVENT}


def observe(record: Record) -> None:
    """Send a record to the callbacks of the current run; the observer for a Trace in synchronous code."""
    dispatch_custom_event(_NAMES[type(record)], record.to_dict())


@asynccontextmanager
async def observing() -> AsyncIterator[Callable[[Record], None]]:
    """The observer for a Trace in asynchronous code, to be called from any thread.

    Records are sent in order, on the event loop, while the block runs; all have been when it ends.
    """
    loop = asyncio.get_running_loop()
    records: asyncio.Queue[Record | None] = asyncio.Queue()

    async def send() -> None:
        while (record := await records.get()) is not None:
            await adispatch_custom_event(_NAMES[type(record)], record.to_dict())

    sender = loop.create_task(send())
    try:
        yield lambda record: _put(loop, records, record)
    finally:
        _put(loop, records, None)
        await sender


def _put(
    loop: asyncio.AbstractEventLoop, records: asyncio.Queue[Record | None], record: Record | None
) -> None:
    loop.call_soon_threadsafe(records.put_nowait, record)
