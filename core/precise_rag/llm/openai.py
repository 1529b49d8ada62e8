"""A client for chat models of OpenAI, or of any server with the OpenAI chat-completions API.

The openai package retries; nothing else does. It retries connection failures and the statuses 408,
409, 429 and 5xx, with increasing pauses, or after the pause that the server's Retry-After asks for.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from precise_rag._extras import require
from precise_rag.errors import (
    ContextLengthError,
    InputError,
    LLMAuthenticationError,
    LLMConnectionError,
    LLMResponseError,
)
from precise_rag.llm.failures import translate, translated
from precise_rag.llm.usage import counted_completion
from precise_rag.types import Completion, Message

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


class OpenAIChat:
    """A chat model, called through the openai package. It can be shared between threads and event loops.

    model: name of the model.
    base_url: address of the server; default: OPENAI_BASE_URL, or else OpenAI's.
    api_key: default: OPENAI_API_KEY. Optional with a `base_url`.
    timeout: seconds without a byte from the server after which a call fails. A long stream does not
        time out, a stalled one does.
    max_retries: attempts after the first.
    options: further fields of every request, such as temperature=0 or max_completion_tokens=500.

    For structured output the request has a `response_format` with the JSON schema. If the server refuses
    that field, the request is sent again without it, and so are all later ones.
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
        if timeout <= 0 or max_retries < 0:
            raise InputError(
                "timeout must be positive and max_retries at least 0, "
                f"got timeout={timeout}, max_retries={max_retries}"
            )
        self.name = model
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        self.timeout = timeout
        self.max_retries = max_retries
        self.options = options
        self._key = api_key or os.environ.get("OPENAI_API_KEY")
        self._refused: set[str] = set()
        self._lock = threading.Lock()
        self._sync: OpenAI | None = None
        self._async: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r}, base_url={self.base_url!r})"

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return one completion.

        schema: JSON schema of the reply; optional.
        Raises an LLMError that says what went wrong and what to do.
        """
        with translated(self.name, where=self.base_url):
            return self._completion(self._create(messages, **_response_format(schema)), messages)

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """`complete` without blocking the event loop. Cancelling it closes the connection."""
        with translated(self.name, where=self.base_url):
            return self._completion(await self._acreate(messages, **_response_format(schema)), messages)

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the answer as they arrive, then the Completion."""
        answer = _Streamed(self.name, messages)
        with translated(self.name, where=self.base_url):
            with self._create(messages, stream=True, stream_options={"include_usage": True}) as events:
                for event in events:
                    if piece := answer.add(event):
                        yield piece
            yield answer.completion()

    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop. Closing it closes the connection."""
        answer = _Streamed(self.name, messages)
        with translated(self.name, where=self.base_url):
            events = await self._acreate(messages, stream=True, stream_options={"include_usage": True})
            async with events:
                async for event in events:
                    if piece := answer.add(event):
                        yield piece
            yield answer.completion()

    def close(self) -> None:
        """Close the connections of the synchronous methods; the next call opens new ones."""
        with self._lock:
            client, self._sync = self._sync, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop; the next call opens new ones."""
        client = self._async.pop(asyncio.get_running_loop(), None)
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
            "messages": [message._asdict() for message in messages],
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
        choices = getattr(response, "choices", None)
        if not choices:
            said = " ".join(str(response).split())[:200]
            raise LLMResponseError(f"{self.name}: the server's answer has no completion ({said})")
        text = choices[0].message.content or ""
        return _checked(self.name, text, choices[0], response, messages)

    def _settings(self) -> dict[str, Any]:
        if self._key is None and self.base_url is None:
            raise LLMAuthenticationError(
                f"{self.name}: no API key; set OPENAI_API_KEY or pass api_key, "
                "or pass base_url for your own server"
            )
        openai = require("openai", extra="openai")
        return {
            "api_key": self._key or "none",
            "base_url": self.base_url,
            "timeout": openai.Timeout(self.timeout, connect=min(self.timeout, 10.0)),
            "max_retries": self.max_retries,
        }

    def _client(self) -> OpenAI:
        with self._lock:
            if self._sync is None:
                settings = self._settings()
                self._sync = require("openai", extra="openai").OpenAI(**settings)
            return self._sync

    def _async_client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        with self._lock:
            for ended in [other for other in self._async if other.is_closed()]:
                del self._async[ended]
            if loop not in self._async:
                settings = self._settings()
                self._async[loop] = require("openai", extra="openai").AsyncOpenAI(**settings)
            return self._async[loop]


class _Streamed:
    """Collects the events of one streamed answer."""

    def __init__(self, model: str, messages: Sequence[Message]) -> None:
        self.model = model
        self.messages = messages
        self.pieces: list[str] = []
        self.last_choice: Any = None
        self.last_event: Any = None

    def add(self, event: Any) -> str:
        """Take one event; returns its text, empty if it has none."""
        if event.usage is not None or self.last_event is None or self.last_event.usage is None:
            self.last_event = event
        if not event.choices:
            return ""
        if self.last_choice is None or event.choices[0].finish_reason is not None:
            self.last_choice = event.choices[0]
        piece = event.choices[0].delta.content or ""
        self.pieces.append(piece)
        return piece

    def completion(self) -> Completion:
        """Return the whole answer. Raises LLMConnectionError if the stream ended too early."""
        if self.last_choice is None or self.last_choice.finish_reason is None:
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


def _checked(model: str, text: str, choice: Any, response: Any, messages: Sequence[Message]) -> Completion:
    """The completion with its usage. Raises LLMResponseError if it is empty, with the reason given."""
    if not text.strip():
        why = getattr(getattr(choice, "message", None), "refusal", None) or choice.finish_reason
        raise LLMResponseError(f"{model}: the completion is empty (finish reason: {why})")
    usage = getattr(response, "usage", None)
    return counted_completion(
        getattr(response, "model", None) or model,
        text,
        messages,
        getattr(usage, "prompt_tokens", None),
        getattr(usage, "completion_tokens", None),
    )
