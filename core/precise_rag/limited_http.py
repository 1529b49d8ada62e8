"""Limits on what a server may send to the clients of httpx: bytes, compression and time.

The limits are event hooks, which httpx calls with each request before it is sent and with each response
before its body is read. They work alike in httpx and in httpx2, which newer openai packages use.
"""

import math
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from precise_rag.errors import LLMConnectionError, LLMError, LLMResponseError
from precise_rag.redaction import redacted

MAX_REPLY_BYTES = 8 * 2**20
"""Most bytes of a reply that is not streamed, once it is decompressed."""

max_reply_bytes: ContextVar[int] = ContextVar("max_reply_bytes", default=MAX_REPLY_BYTES)
"""The same for the requests of a context, for replies that may be longer."""

MAX_STREAM_BYTES = 64 * 2**20
"""Most bytes of a streamed reply. Its events are many times longer than the text that they carry."""

call_ends_at: ContextVar[float] = ContextVar("call_ends_at", default=math.inf)
"""When the calls of this context end, on the clock of `time.monotonic`."""

_PIECE_BYTES = 2**16
_LONGEST_PAUSE = 60.0
"""Seconds of Retry-After that the openai package obeys; it ignores longer ones."""
_USUAL_PAUSE = 1.0
"""Seconds between attempts if little time is left and the server names none."""


class HttpLimits:
    """The event hooks of one client.

    http: the module httpx or httpx2.
    source: name of the server, for the messages.
    seconds: most seconds from a request to the end of its reply; default: no limit. Calls end earlier if
        `call_ends_at` says so.

    Raises LLMResponseError for a reply that is too long, or compressed in another way than by gzip;
    LLMConnectionError if no time is left for a request; and the timeout errors of httpx if a reply does
    not end in time.
    """

    def __init__(
        self,
        http: ModuleType,
        source: str,
        *,
        seconds: float = math.inf,
    ) -> None:
        self._http = http
        self._source = source
        self._seconds = seconds

    @property
    def hooks(self) -> dict[str, list[Callable[[Any], Any]]]:
        """For a synchronous client."""
        return {"request": [self._begin], "response": [self._limit]}

    @property
    def async_hooks(self) -> dict[str, list[Callable[[Any], Any]]]:
        """For an asynchronous client."""

        async def begin(request: Any) -> None:
            self._begin(request)

        async def limit(response: Any) -> None:
            self._limit(response)

        return {"request": [begin], "response": [limit]}

    def _begin(self, request: Any) -> None:
        now = time.monotonic()
        ends_at = min(call_ends_at.get(), now + self._seconds)
        if ends_at <= now:
            raise LLMConnectionError(f"{self._source}: no time is left for another request")
        request.headers["accept-encoding"] = "gzip"
        request.extensions["ends_at"] = ends_at
        timeouts = request.extensions.get("timeout", {})
        request.extensions["timeout"] = {
            name: _least(seconds, ends_at - now) for name, seconds in timeouts.items()
        }

    def _limit(self, response: Any) -> None:
        if response.status_code >= 400:
            _shorten_pause(response)
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        if encoding not in ("gzip", "identity", ""):
            raise LLMResponseError(
                f"{self._source}: the reply is compressed by {redacted(encoding)[:40]!r}, not gzip"
            )
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        limited, alimited = _stream_classes(self._http)
        kind = limited if isinstance(response.stream, self._http.SyncByteStream) else alimited
        response.stream = kind(
            response.stream,
            _Reader(
                self._source,
                MAX_STREAM_BYTES if streamed else max_reply_bytes.get(),
                zlib.decompressobj(wbits=31) if encoding == "gzip" else None,
                response.request.extensions.get("ends_at", math.inf),
                self._http.ReadTimeout,
            ),
        )


def _shorten_pause(response: Any) -> None:
    """Let the client wait before its next attempt no longer than until the calls of this context end.

    The thread of a call that was left behind would sleep as long as Retry-After asks, up to a minute.
    """
    left = call_ends_at.get() - time.monotonic()
    if left > _LONGEST_PAUSE:
        return
    asked = _USUAL_PAUSE
    for name, unit in (("retry-after", 1.0), ("retry-after-ms", 1e-3)):
        with suppress(KeyError, ValueError):  # none, or a date
            asked = float(response.headers[name]) * unit
    pause = asked if 0.0 < asked < left else max(left, 0.0)
    response.headers["retry-after-ms"] = str(math.ceil(1_000 * pause) + 1)


class _Reader:
    """Decompresses a reply piece by piece, and stops at its limits."""

    def __init__(
        self, source: str, max_bytes: int, gzip: Any | None, ends_at: float, timeout: type[Exception]
    ) -> None:
        self._source, self._max_bytes, self._gzip = source, max_bytes, gzip
        self._ends_at, self._timeout = ends_at, timeout
        self._n_raw = self._n_decoded = 0

    def pieces(self, raw: bytes) -> Iterator[bytes]:
        self._n_raw += len(raw)
        self._check()
        if self._gzip is None:
            yield raw
            return
        while raw and not self._gzip.eof:
            try:
                piece = self._gzip.decompress(raw, _PIECE_BYTES)
            except zlib.error as error:
                raise LLMResponseError(f"{self._source}: the reply is not valid gzip ({error})") from None
            raw = self._gzip.unconsumed_tail
            self._n_decoded += len(piece)
            self._check()
            yield piece

    def _check(self) -> None:
        if max(self._n_raw, self._n_decoded) > self._max_bytes:
            raise LLMResponseError(f"{self._source}: the reply is longer than {self._max_bytes:,} bytes")
        if time.monotonic() > self._ends_at:
            raise self._timeout("the reply did not end in time")


class _Limited:
    def __init__(self, stream: Any, reader: _Reader) -> None:
        self._stream, self._reader = stream, reader

    def __iter__(self) -> Iterator[bytes]:
        for raw in self._stream:
            yield from self._reader.pieces(raw)

    def close(self) -> None:
        self._stream.close()


class _AsyncLimited:
    def __init__(self, stream: Any, reader: _Reader) -> None:
        self._stream, self._reader = stream, reader

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for raw in self._stream:
            for piece in self._reader.pieces(raw):
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@lru_cache(maxsize=4)
def _stream_classes(http: ModuleType) -> tuple[type, type]:
    """The two classes as the byte streams of `http`, which it insists on."""
    return (
        type("LimitedStream", (_Limited, http.SyncByteStream), {}),
        type("AsyncLimitedStream", (_AsyncLimited, http.AsyncByteStream), {}),
    )


def _least(seconds: float | None, left: float) -> float | None:
    if seconds is None:
        return None if left == math.inf else left
    return min(seconds, left)


def openai_connection(
    openai: ModuleType,
    source: str,
    *,
    auth: tuple[str, str] | None = None,
    seconds: float = math.inf,
) -> Any:
    """Return a connection with limits for a synchronous client of the openai package.

    openai: the package. auth: user and password for the server; optional. The rest: see `HttpLimits`.
    """
    limits = HttpLimits(_http_of(openai), source, seconds=seconds)
    return openai.DefaultHttpxClient(event_hooks=limits.hooks, auth=auth)


def async_openai_connection(openai: ModuleType, source: str, *, auth: tuple[str, str] | None = None) -> Any:
    """Return `openai_connection` for an asynchronous client."""
    limits = HttpLimits(_http_of(openai), source)
    return openai.DefaultAsyncHttpxClient(event_hooks=limits.async_hooks, auth=auth)


def _http_of(openai: ModuleType) -> ModuleType:
    """The httpx that this version of the openai package uses."""
    client = next(kind for kind in openai.DefaultHttpxClient.__mro__ if kind.__name__ == "Client")
    return import_module(client.__module__.partition(".")[0])


def own_error(error: BaseException | None) -> LLMError | None:
    """Return the LLMError that `error` was raised from, such as that of a reply over its limit, or None."""
    for _ in range(10):
        if error is None or isinstance(error, LLMError):
            return error
        error = error.__cause__ or error.__context__
    return None
