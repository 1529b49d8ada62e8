"""What ends the requests of our own clients, and limits the replies: hooks for the clients of httpx."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from precise_rag._worker import call_ends_at
from precise_rag.errors import LLMConnectionError

_PART = 64
"""Bytes of memory that each part of a reply takes beside its text."""
_CODINGS = frozenset({"", "identity", "gzip"})
"""How a reply may be packed: one part of it is never more than a thousand times as long unpacked."""


class ReplyLimitError(ValueError):
    """A reply is too large, or packed so that it may be."""


def hooks(most: int = 64 * 2**20) -> dict[str, list[Any]]:
    """Hooks for a client: its requests and reads end with the call that makes them (`call_ends_at`).

    most: largest reply, in bytes of memory.
    """
    return {"request": [_begin], "response": [lambda response: _limit(response, most)]}


def async_hooks() -> dict[str, list[Any]]:
    """`hooks` for an asynchronous client."""

    async def begin(request: Any) -> None:
        _begin(request)

    async def limit(response: Any) -> None:
        _limit(response, 64 * 2**20)

    return {"request": [begin], "response": [limit]}


def _seconds_left() -> float:
    """Seconds until the call ends. Raises LLMConnectionError if it was left behind."""
    left = call_ends_at.get() - time.monotonic()
    if left <= 0:
        raise LLMConnectionError("the call was left behind, so nothing more is sent or read")
    return left


def _begin(request: Any) -> None:
    left, timeouts = _seconds_left(), request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        name: left if seconds is None else min(left, seconds) for name, seconds in timeouts.items()
    }
    request.headers["accept-encoding"] = "gzip"


def _limit(response: Any, most: int) -> None:
    """Let the reply be read up to its limit, in whatever way the client reads it."""
    if (coding := response.headers.get("content-encoding", "").lower()) not in _CODINGS:
        raise ReplyLimitError(f"it is packed as {coding!r}, which was not asked for")
    read, aread, size = response.iter_bytes, response.aiter_bytes, 0

    def checked(part: bytes) -> bytes:
        nonlocal size
        _seconds_left()
        size += len(part) + _PART
        if size > most:
            raise ReplyLimitError(f"it is larger than {most:,} bytes")
        return part

    def iter_bytes(chunk_size: int | None = None) -> Iterator[bytes]:
        yield from map(checked, read(chunk_size))

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        async for part in aread(chunk_size):
            yield checked(part)

    response.iter_bytes, response.aiter_bytes = iter_bytes, aiter_bytes
