"""The records of a trace, sent while its question is answered without blocking the event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from precise_rag.trace.record import Record


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
