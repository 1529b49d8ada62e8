"""A client for chat models of OpenAI, or of any server with the OpenAI chat-completions API.

The openai package retries; nothing else does. It retries connection failures and the statuses 408,
409, 429 and 5xx, with increasing pauses, or after the pause that the server's Retry-After asks for.
"""

from __future__ import annotations

import asyncio
import math
import os
import weakref
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from precise_rag._extras import require
from precise_rag._processes import PerProcess, ProcessLock, Shared
from precise_rag.checks import check_number, check_text
from precise_rag.errors import (
    ContentFilterError,
    ContextLengthError,
    LLMAuthenticationError,
    LLMConnectionError,
    LLMResponseError,
)
from precise_rag.limited_http import limited_client
from precise_rag.llm.failures import raises_llm_errors, translate
from precise_rag.llm.finish import cut_off, read
from precise_rag.llm.usage import counted_completion, model_name, readable_messages
from precise_rag.redaction import (
    KeyFreeStream,
    quoted,
    remember,
    remember_environment,
    remember_fields,
    without_known_keys,
    without_password,
    without_secrets,
)
from precise_rag.types import Completion, Message

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


class OpenAIChat(Shared):
    """A chat model, called through the openai package. It can be shared between threads and event loops.

    model: name of the model.
    base_url: address of the server; default: OPENAI_BASE_URL, or else OpenAI's. A user and password in it
        are sent, but not kept in the attribute `base_url`.
    api_key: default: OPENAI_API_KEY. Optional with a `base_url`.
    timeout: most seconds of one attempt, from the request to the end of the reply; also the most seconds
        between two pieces of a stream, which may take ten times as long as a whole.
    max_retries: attempts after the first.
    options: further fields of every request, such as temperature=0 or max_completion_tokens=500.

    A reply may have at most 8 MiB, a stream at most 64 MiB and 200,000 events.
    For structured output the request has a `response_format` with the JSON schema. If the server refuses
    that field, the request is sent again without it, and so are all later ones.

    A forked process opens connections of its own. A copy is the client itself. A pickle has no key: the
    key of an unpickled client is OPENAI_API_KEY.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        **options: Any,
    ) -> None:
        check_number("timeout", timeout, above_zero=True)
        check_number("max_retries", max_retries, least=0, whole=True)
        check_text("base_url", base_url or "")
        self.name = model
        self.base_url, self._auth = without_password(base_url or os.environ.get("OPENAI_BASE_URL"))
        self.timeout = timeout
        self.max_retries = max_retries
        self.options = options
        self._key = api_key or os.environ.get("OPENAI_API_KEY")
        remember(self._key)
        remember_environment()
        remember_fields(options)
        self._needs_key = self.base_url is None
        self._refused: set[str] = set()
        self._lock = ProcessLock()
        self._sync: PerProcess[OpenAI] = PerProcess()
        self._async: PerProcess[dict[asyncio.AbstractEventLoop, AsyncOpenAI]] = PerProcess()

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_key": None,
            "_auth": None,
            "_needs_key": self._needs_key or self._key is not None or self._auth is not None,
            "options": without_secrets(self.options),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._key = os.environ.get("OPENAI_API_KEY")

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r}, base_url={self.base_url!r})"

    max_call_seconds = math.inf  # its requests have limits of their own

    @property
    def max_reply_tokens(self) -> Any:
        """The option `max_completion_tokens` or `max_tokens`; None without both."""
        return self.options.get("max_completion_tokens", self.options.get("max_tokens"))

    @raises_llm_errors
    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return one completion.

        schema: JSON schema of the reply; optional.
        Raises an LLMError that says what went wrong and what to do.
        """
        return self._completion(self._create(messages, **_response_format(schema)), messages)

    @raises_llm_errors
    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """`complete` without blocking the event loop. Cancelling it closes the connection."""
        return self._completion(await self._acreate(messages, **_response_format(schema)), messages)

    @raises_llm_errors
    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the answer as they arrive, then the Completion."""
        answer = _Streamed(self.name, messages)
        with self._create(messages, stream=True, stream_options={"include_usage": True}) as events:
            for event in events:
                if piece := answer.add(event):
                    yield piece
        if piece := answer.rest():
            yield piece
        yield answer.completion()

    @raises_llm_errors
    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop. Closing it closes the connection."""
        answer = _Streamed(self.name, messages)
        events = await self._acreate(messages, stream=True, stream_options={"include_usage": True})
        async with events:
            async for event in events:
                if piece := answer.add(event):
                    yield piece
        if piece := answer.rest():
            yield piece
        yield answer.completion()

    def close(self) -> None:
        """Close the connections of the synchronous methods; the next call opens new ones."""
        if (client := self._sync.take()) is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop; the next call opens new ones."""
        client = self._async.get(dict).pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _create(self, messages: Sequence[Message], **fields: Any) -> Any:
        create: Any = self._client().chat.completions.create
        try:
            return create(**self._request(messages, fields))
        except Exception as error:
            if not self._may_drop(error, fields):
                raise
        response = create(**self._request(messages, fields, plain=True))
        self._refused |= _DROPPABLE & fields.keys()
        return response

    async def _acreate(self, messages: Sequence[Message], **fields: Any) -> Any:
        create: Any = self._async_client().chat.completions.create
        try:
            return await create(**self._request(messages, fields))
        except Exception as error:
            if not self._may_drop(error, fields):
                raise
        response = await create(**self._request(messages, fields, plain=True))
        self._refused |= _DROPPABLE & fields.keys()
        return response

    def _request(
        self, messages: Sequence[Message], fields: Mapping[str, Any], plain: bool = False
    ) -> dict[str, Any]:
        left_out = _DROPPABLE if plain else self._refused
        return {
            "model": self.name,
            "messages": [message._asdict() for message in readable_messages(messages)],
            **{name: value for name, value in fields.items() if name not in left_out},
            **self.options,
        }

    def _may_drop(self, error: Exception, fields: Mapping[str, Any]) -> bool:
        """Whether the server may have refused the request because of an optional field."""
        return (
            getattr(error, "status_code", None) in (400, 422)
            and bool(_DROPPABLE & fields.keys() - self._refused)
            and not isinstance(translate(error, self.name), ContextLengthError)
        )

    def _completion(self, response: Any, messages: Sequence[Message]) -> Completion:
        choice = _first_choice(response)
        if choice is None:
            said = quoted(response)
            raise LLMResponseError(f"{self.name}: the server's answer has no completion ({said})")
        text = read(read(choice, "message"), "content")
        return _checked(self.name, text, choice, response, messages)

    def _settings(self) -> dict[str, Any]:
        if self._key is None and self._needs_key:
            raise LLMAuthenticationError(
                f"{self.name}: no API key; set OPENAI_API_KEY (api_key=), "
                "or name your own server (base_url=, --base-url)"
            )
        openai = require("openai", extra="openai")
        return {
            "api_key": self._key or "none",
            "base_url": self.base_url,
            "timeout": openai.Timeout(self.timeout, connect=min(self.timeout, 10.0)),
            "max_retries": int(self.max_retries),
        }

    def _client(self) -> OpenAI:
        return self._sync.get(self._connect)

    def _connect(self) -> OpenAI:
        settings, openai = self._settings(), require("openai", extra="openai")
        connection = limited_client(
            openai.DefaultHttpxClient, self.name, seconds=self.timeout, auth=self._auth
        )
        client: OpenAI = openai.OpenAI(**settings, http_client=connection)
        weakref.finalize(client, connection.close)
        return client

    def _async_client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        with self._lock:
            clients = self._async.get(dict)
            for ended in [other for other in clients if other.is_closed()]:
                del clients[ended]
            if loop not in clients:
                settings, openai = self._settings(), require("openai", extra="openai")
                connection = limited_client(
                    openai.DefaultAsyncHttpxClient, self.name, seconds=self.timeout, auth=self._auth
                )
                clients[loop] = openai.AsyncOpenAI(**settings, http_client=connection)
            return clients[loop]


_MOST_EVENTS = 200_000
"""Most events of a stream; one has about a token."""


class _Streamed:
    """Collects the events of one streamed answer."""

    def __init__(self, model: str, messages: Sequence[Message]) -> None:
        self.model = model
        self.messages = messages
        self.pieces: list[str] = []
        self.last_choice: Any = None
        self.last_event: Any = None
        self.n_events = 0
        self._stream = KeyFreeStream()

    def add(self, event: Any) -> str:
        """Take one event; returns its text, empty if it has none. Raises LLMResponseError after too many."""
        self.n_events += 1
        if self.n_events > _MOST_EVENTS:
            raise LLMResponseError(f"{self.model}: the stream has more than {_MOST_EVENTS:,} events")
        if read(event, "usage") is not None or read(self.last_event, "usage") is None:
            self.last_event = event
        choice = _first_choice(event)
        if choice is None:
            return ""
        if self.last_choice is None or read(choice, "finish_reason") is not None:
            self.last_choice = choice
        piece = read(read(choice, "delta"), "content")
        if not piece:
            return ""
        if not isinstance(piece, str):
            raise LLMResponseError(f"{self.model}: the stream must hold strings, got {type(piece).__name__}")
        return self._keep(self._stream.add(piece))

    def rest(self) -> str:
        """Return the text that was held back, once there are no more events."""
        return self._keep(self._stream.end())

    def _keep(self, piece: str) -> str:
        self.pieces.append(piece)
        return piece

    def completion(self) -> Completion:
        """Return the whole answer. Raises LLMConnectionError if the stream ended too early."""
        if read(self.last_choice, "finish_reason") is None:
            raise LLMConnectionError(f"{self.model}: the stream ended before the answer was complete")
        return _checked(self.model, "".join(self.pieces), self.last_choice, self.last_event, self.messages)


_DROPPABLE = frozenset({"response_format", "stream_options"})


def _response_format(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if schema is None:
        return {}
    name = str(schema.get("title", "reply"))
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": dict(schema), "strict": True},
        }
    }


def _first_choice(response: Any) -> Any | None:
    """The first choice of a reply or of an event; None if it has none."""
    choices = read(response, "choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _checked(model: str, text: Any, choice: Any, response: Any, messages: Sequence[Message]) -> Completion:
    """The completion with its usage.

    Raises LLMResponseError or ContentFilterError if it is empty, with the reason given.
    """
    reason = read(choice, "finish_reason")
    if text is None or (isinstance(text, str) and not text.strip()):
        why = quoted(read(read(choice, "message"), "refusal") or reason)
        kind = ContentFilterError if cut_off(reason) == "content_filter" else LLMResponseError
        raise kind(f"{model}: the completion is empty (finish reason: {why})")
    usage = read(response, "usage")
    return counted_completion(
        model_name(read(response, "model"), model),
        without_known_keys(text) if isinstance(text, str) else text,
        messages,
        read(usage, "prompt_tokens"),
        read(usage, "completion_tokens"),
        cut_off(reason),
    )
