"""Clients of servers: their address, and hooks for httpx.

Requests and replies end with the call; replies have a largest size.
"""

import time
import weakref
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from precise_rag._extras import require
from precise_rag._worker import call_ends_at
from precise_rag.checks import check_number, check_text
from precise_rag.errors import InputError, LLMConnectionError
from precise_rag.redaction import remember, remember_environment, without_password

_MOST, _PART = 64 * 2**20, 64
"""Bytes of a reply that may be kept in memory, and those that each of its parts takes beside its text."""


class ReplyLimitError(ValueError):
    """A reply is too large, or packed so that it may be."""


def client_address(
    base_url: str | None, api_key: str | None, *, timeout: float, max_retries: int
) -> tuple[str | None, tuple[str, str] | None]:
    """Return the address of a server, and the user and password in it, which are hidden with the key.

    Raises InputError for what no client of a server takes.
    """
    check_number("timeout", timeout, above_zero=True)
    check_number("max_retries", max_retries, least=0, whole=True)
    check_text("base_url", base_url or "")
    if base_url and (not base_url.startswith(("https://", "http://")) or "?" in base_url):
        raise InputError('base_url must begin with "https://" or "http://", and have no query')
    remember(api_key)
    remember_environment()
    return without_password(base_url)


def openai_client(kind: str, auth: Any, event_hooks: Any, *, timeout: Any, **options: Any) -> Any:
    """Return a client of the openai package. kind: "" or "Async"; the connection of the first ends with it.

    auth, event_hooks: of its connection. timeout: as for `OpenAIChat`. options: its further arguments.
    """
    openai = require("openai", extra="openai")
    connect = getattr(openai, f"Default{kind}HttpxClient")
    connection = connect(auth=auth, event_hooks=event_hooks, follow_redirects=False)
    limits = openai.Timeout(timeout, connect=min(timeout, 10.0))
    client = getattr(openai, f"{kind}OpenAI")(**options, timeout=limits, http_client=connection)
    if not kind:
        weakref.finalize(client, connection.close)
    return client


def hooks(most: int = _MOST) -> dict[str, list[Any]]:
    """Hooks for a client. most: bytes of a reply that may be kept in memory."""
    return {"request": [_begin], "response": [lambda response: _limit(response, most)]}


def async_hooks() -> dict[str, list[Any]]:
    """`hooks` for an asynchronous client."""

    async def call(hook: Callable[[Any], None], subject: Any) -> None:
        hook(subject)

    return {event: [partial(call, hook)] for event, (hook,) in hooks().items()}


def _begin(request: Any) -> None:
    left, timeouts = _seconds_left(), request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        name: left if seconds is None else min(left, seconds) for name, seconds in timeouts.items()
    }
    if key := request.headers.get("authorization", "").strip():  # of a file, it may end with a line
        request.headers["authorization"] = key
        remember(key.rpartition(" ")[2])  # the keys in use are known
    request.headers["accept-encoding"] = "gzip"  # unpacks one part to a thousand times its size at most


def _limit(response: Any, most: int) -> None:
    """Limit what the client reads of a reply, as a whole or piece by piece."""
    if (coding := response.headers.get("content-encoding", "").lower()) not in ("", "identity", "gzip"):
        raise ReplyLimitError(f"it is packed as {coding!r}, which was not asked for")
    read, aread, size = response.iter_bytes, response.aiter_bytes, 0

    def checked(part: bytes) -> bytes:
        nonlocal size
        _seconds_left()
        size += len(part) + _PART
        if size > most:
            raise ReplyLimitError(f"it is larger than {most:,} bytes")
        return part

    async def aiter_bytes(*args: Any) -> AsyncIterator[bytes]:
        async for part in aread(*args):
            yield checked(part)

    response.iter_bytes, response.aiter_bytes = lambda *args: map(checked, read(*args)), aiter_bytes


def _seconds_left() -> float:
    left = call_ends_at.get() - time.monotonic()
    if left <= 0:
        raise LLMConnectionError("the call was left behind, so nothing more is sent or read")
    return left
