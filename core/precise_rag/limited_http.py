"""Clients of httpx with limits on what a server may send: bytes, compression and time.

They work alike with httpx and with httpx2, which newer openai packages use.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import wait
from contextvars import ContextVar
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from precise_rag._worker import Worker, call_ends_at
from precise_rag.errors import LLMConnectionError, LLMError, LLMResponseError

MAX_REPLY_BYTES = 8 * 2**20
"""Most bytes of a reply that is not streamed."""

max_reply_bytes: ContextVar[int] = ContextVar("max_reply_bytes", default=MAX_REPLY_BYTES)
"""The same for the requests of a context, for replies that may be longer."""

MAX_STREAM_BYTES = 64 * 2**20
"""Most bytes of a streamed reply. Its events are many times longer than the text that they carry."""

STREAM_TIMES = 10
"""A stream may take so many times the seconds of another reply, as long as its bytes keep coming."""


def limited_client(kind: type, source: str, *, seconds: float, **options: Any) -> Any:
    """Return a client with limits.

    kind: the class of client, of httpx or derived from it, such as `openai.DefaultAsyncHttpxClient`.
    source: name of the server, for the messages.
    seconds: most seconds from a request to the end of its reply; `STREAM_TIMES` as many for a stream. Calls
        end earlier if `call_ends_at` says so.
    options: arguments of `kind`.

    Its requests raise LLMResponseError for a reply that is too long or compressed, and LLMConnectionError if
    no time is left for a request. They raise the timeout errors of httpx if a reply does not end in time.
    """
    client = _limited_kind(kind)(**options)
    client.limits = _Limits(source, seconds)
    return client


class _Limits(NamedTuple):
    source: str
    seconds: float

    def begin(self, request: Any, stream: bool) -> float:
        """Set the limits of a request; returns when its reply ends at the latest."""
        now = time.monotonic()
        ends_at = min(call_ends_at.get(), now + self.seconds * (STREAM_TIMES if stream else 1))
        if ends_at <= now:
            raise LLMConnectionError(f"{self.source}: no time is left for another request")
        request.headers["accept-encoding"] = "identity"
        timeouts = request.extensions.get("timeout", {})
        request.extensions["timeout"] = {
            name: min(ends_at - now, math.inf if given is None else given) for name, given in timeouts.items()
        }
        return ends_at

    def meter(
        self, response: Any, ends_at: float, timeout: Callable[[str], Exception]
    ) -> Callable[[bytes], None]:
        """Return what is called with each piece of a reply; it raises at the limits."""
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise LLMResponseError(f"{self.source}: the reply is compressed, which was not asked for")
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        most, n_bytes = MAX_STREAM_BYTES if is_stream else max_reply_bytes.get(), 0

        def count(piece: bytes) -> None:
            nonlocal n_bytes
            n_bytes += len(piece)
            if n_bytes > most:
                raise LLMResponseError(f"{self.source}: the reply is longer than {most:,} bytes")
            if time.monotonic() > ends_at:
                raise timeout("the reply did not end in time")

        return count


@lru_cache(maxsize=8)
def _limited_kind(kind: type) -> type:
    """A class of clients like `kind` that obey their attribute `limits`."""
    names = {base.__name__: base for base in kind.__mro__}
    is_async = "AsyncClient" in names
    httpx = import_module(names["AsyncClient" if is_async else "Client"].__module__.partition(".")[0])
    send = _async_send(kind, httpx) if is_async else _send(kind, httpx)
    return type(f"Limited{kind.__name__}", (kind,), {"send": send})


def _send(kind: Any, httpx: Any) -> Callable[..., Any]:
    class Stream(httpx.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, count: Callable[[bytes], None]) -> None:
            self._stream, self._count = stream, count

        def __iter__(self) -> Iterator[bytes]:
            for piece in self._stream:
                self._count(piece)
                yield piece

        def close(self) -> None:
            self._stream.close()

    def send(self: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        ends_at = self.limits.begin(request, stream)
        begin = partial(kind.send, self, request, stream=True, **options)
        response = _within(ends_at, begin, httpx.ReadTimeout)
        try:
            count = self.limits.meter(response, ends_at, httpx.ReadTimeout)
            reply = _reply(httpx, response, Stream(response.stream, count))
            if not stream:
                reply.read()
        except BaseException:
            response.close()
            raise
        return reply

    return send


def _async_send(kind: Any, httpx: Any) -> Callable[..., Any]:
    class Stream(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, count: Callable[[bytes], None]) -> None:
            self._stream, self._count = stream, count

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                self._count(piece)
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def send(self: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        ends_at = self.limits.begin(request, stream)
        try:
            async with asyncio.timeout(ends_at - time.monotonic()):
                response = await kind.send(self, request, stream=True, **options)
        except TimeoutError:
            raise httpx.ReadTimeout("the reply did not begin in time") from None
        try:
            count = self.limits.meter(response, ends_at, httpx.ReadTimeout)
            reply = _reply(httpx, response, Stream(response.stream, count))
            if not stream:
                await reply.aread()
        except BaseException:
            await response.aclose()
            raise
        return reply

    return send


def _reply(httpx: Any, response: Any, stream: Any) -> Any:
    """The response with another stream."""
    return httpx.Response(
        response.status_code,
        headers=response.headers,
        stream=stream,
        request=response.request,
        extensions=response.extensions,
    )


def _within(ends_at: float, begin: Callable[[], Any], timeout: Callable[[str], Exception]) -> Any:
    """The response that `begin` returns. If its head does not come in time, its thread is left behind.

    A thread, as each byte of a head has the whole timeout of httpx.
    """
    worker = Worker(ends_at)
    response = worker.submit(begin)
    worker.close()
    try:
        if wait([response], ends_at - time.monotonic()).done:
            return response.result()
    except BaseException:
        response.add_done_callback(_close)
        raise
    response.add_done_callback(_close)
    raise timeout("the reply did not begin in time")


def _close(response: Any) -> None:
    """Close a response that nobody waits for."""
    if response.exception() is None:
        response.result().close()


def own_error(error: BaseException | None) -> LLMError | None:
    """Return the LLMError that `error` was raised from, such as that of a reply over its limit, or None."""
    for _ in range(10):
        if error is None or isinstance(error, LLMError):
            return error
        error = error.__cause__ or error.__context__
    return None
