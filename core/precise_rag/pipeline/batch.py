"""Many questions at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from precise_rag.answer import Answer
from precise_rag.checks import check_number
from precise_rag.errors import PreciseRagError


async def answer_all(
    answer: Callable[..., Awaitable[Answer]],
    queries: Iterable[str | Mapping[str, Any]],
    concurrency: int,
    return_errors: bool,
) -> list[Any]:
    """Answer several questions concurrently; see `PreciseRAG.abatch`. answer: answers one."""
    check_number("concurrency", concurrency, least=1, whole=True)
    slots = asyncio.Semaphore(concurrency)

    async def one(query: str | Mapping[str, Any]) -> Answer | PreciseRagError:
        given = {"query": query} if isinstance(query, str) else dict(query)
        async with slots:
            try:
                return await answer(**given)
            except PreciseRagError as error:
                if not return_errors:
                    raise
                return error

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(query)) for query in queries]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
