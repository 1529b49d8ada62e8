"""A client for chat models of OpenAI, or of any server with the OpenAI chat-completions API.

The openai package retries; nothing else does. It retries connection failures and the statuses 408,
409, 429 and 5xx, with increasing pauses, or after the pause that the server's Retry-After asks for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from precise_rag._http import async_hooks, client_address, hooks, openai_client
from precise_rag._processes import PerProcess, ProcessLock, Shared
from precise_rag.errors import LLMAuthenticationError, LLMConnectionError, LLMResponseError
from precise_rag.failures import OptionalFeature, llm_errors, reason_in
from precise_rag.llm.usage import counted_completion, cut_off, model_name, read, readable_messages
from precise_rag.redaction import RedactedStream, remember_fields, without_secrets
from precise_rag.types import Completion, Message, Schema

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


class OpenAIChat(Shared):
    """A chat model, called through the openai package. It can be shared between threads and event loops.

    base_url: address of the server; default: OPENAI_BASE_URL, or else OpenAI's. A user and password in it
        are sent, but not kept in the attribute `base_url`.
    api_key: default: OPENAI_API_KEY. Optional with a `base_url`.
    timeout: most seconds without a byte from the server. A call in a pipeline, with its retries, ends after
        ten times as many.
    max_retries: attempts after the first.
    options: further fields of every request, such as temperature=0 or max_completion_tokens=500.

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
        self.name = model
        self._key = api_key or os.environ.get("OPENAI_API_KEY")
        self.base_url, self._auth = client_address(
            base_url or os.environ.get("OPENAI_BASE_URL"), self._key, timeout=timeout, max_retries=max_retries
        )
        self.timeout = timeout
        self.max_retries = max_retries
        self.options = options
        remember_fields(options)
        self._needs_key = self.base_url is None
        self._schemas, self._stream_usage = OptionalFeature(model), OptionalFeature(model)
        self._lock = ProcessLock()
        self._sync: PerProcess[OpenAI] = PerProcess()
        self._async: PerProcess[dict[asyncio.AbstractEventLoop, AsyncOpenAI]] = PerProcess()

    def __getstate__(self) -> dict[str, Any]:
        needs_key = self._needs_key or self._key is not None or self._auth is not None
        hidden = {"_key": None, "_auth": None, "options": without_secrets(self.options)}
        return self.__dict__ | hidden | {"_needs_key": needs_key}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._key = os.environ.get("OPENAI_API_KEY")

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r}, base_url={self.base_url!r})"

    @property
    def max_call_seconds(self) -> float:
        """Seconds after which a pipeline gives a call up."""
        return 10 * self.timeout

    def complete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """Return one completion.

        schema: JSON schema of the reply; optional.
        Raises an LLMError that says what went wrong and what to do.
        """

        def sent(fields: Mapping[str, Any]) -> Completion:
            return self._completion(self._send(messages, fields), messages)

        with llm_errors(self):
            structured = None if schema is None else partial(sent, _response_format(schema))
            return self._schemas.ask(structured, partial(sent, {}))

    async def acomplete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """`complete` without blocking the event loop. Cancelling it closes the connection."""

        async def sent(fields: Mapping[str, Any]) -> Completion:
            return self._completion(await self._asend(messages, fields), messages)

        with llm_errors(self):
            structured = None if schema is None else partial(sent, _response_format(schema))
            return await self._schemas.aask(structured, partial(sent, {}))

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the answer as they arrive, then the Completion."""
        answer, send = _Streamed(self.name), partial(self._send, messages)
        with (
            llm_errors(self),
            self._stream_usage.ask(partial(send, _WITH_USAGE), partial(send, _STREAM)) as events,
        ):
            for event in events:
                if piece := answer.add(event):
                    yield piece
            yield from answer.end(messages)

    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop. Closing it closes the connection."""
        answer, send = _Streamed(self.name), partial(self._asend, messages)
        with llm_errors(self):
            events = await self._stream_usage.aask(partial(send, _WITH_USAGE), partial(send, _STREAM))
            async with events:
                async for event in events:
                    if piece := answer.add(event):
                        yield piece
            for item in answer.end(messages):
                yield item

    def close(self) -> None:
        """Close the connections of the synchronous methods; the next call opens new ones."""
        if (client := self._sync.take()) is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop; the next call opens new ones."""
        client = self._async.get(dict).pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _send(self, messages: Sequence[Message], fields: Mapping[str, Any]) -> Any:
        create: Any = self._sync.get(partial(self._client, "", hooks())).chat.completions.create
        return create(**self._request(messages, fields))

    async def _asend(self, messages: Sequence[Message], fields: Mapping[str, Any]) -> Any:
        create: Any = self._async_client().chat.completions.create
        return await create(**self._request(messages, fields))

    def _request(self, messages: Sequence[Message], fields: Mapping[str, Any]) -> dict[str, Any]:
        shown = [message._asdict() for message in readable_messages(messages)]
        return {"model": self.name, "messages": shown, **fields, **self.options}

    def _completion(self, response: Any, messages: Sequence[Message]) -> Completion:
        choice = _first_choice(response)
        text, reason = _text(read(choice, "message")), read(choice, "finish_reason")
        if choice is None or reason == "error":
            why = reason_in(choice or response)
            raise LLMResponseError(f"{self.name}: the server's answer has no completion ({why})")
        model, usage = read(response, "model"), read(response, "usage")
        return _counted(self.name, model, text, messages, reason, usage)

    def _client(self, kind: str, event_hooks: Any) -> Any:
        if self._key is None and self._needs_key:
            raise LLMAuthenticationError(
                f"{self.name}: no API key; set OPENAI_API_KEY (api_key=), "
                "or name your own server (base_url=, --base-url)"
            )
        options = {"base_url": self.base_url, "timeout": self.timeout, "max_retries": int(self.max_retries)}
        return openai_client(kind, self._auth, event_hooks, api_key=self._key or "none", **options)

    def _async_client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        with self._lock:
            clients = self._async.get(dict)
            for ended in [other for other in clients if other.is_closed()]:
                del clients[ended]
            if loop not in clients:
                clients[loop] = self._client("Async", async_hooks())
            return clients[loop]


class _Streamed:
    def __init__(self, model: str) -> None:
        self._name = model
        self._pieces: list[str] = []
        self._redacted = RedactedStream()
        self._model: Any = None
        self._finish_reason: Any = None
        self._usage: Any = None
        self._why = ""

    def add(self, event: Any) -> str:
        """Take one event; returns its text, empty if it has none."""
        self._model = read(event, "model") or self._model
        self._usage = read(event, "usage") or self._usage
        choice = _first_choice(event)
        if read(event, "choices") is None or read(choice, "error"):
            self._why = f" ({reason_in(choice or event)})"
        self._finish_reason = read(choice, "finish_reason") or self._finish_reason
        piece = _text(read(choice, "delta")) or ""
        if not isinstance(piece, str):
            raise LLMResponseError(f"{self._name}: the stream must hold strings, got {type(piece).__name__}")
        self._pieces.append(piece)
        return self._redacted.add(piece)

    def end(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield what is left, then the whole answer. Raises LLMConnectionError if it ended too early."""
        if self._finish_reason in (None, "error"):
            raise LLMConnectionError(f"{self._name}: the stream ended before the answer did{self._why}")
        yield from filter(None, [self._redacted.add("", last=True)])
        text = "".join(self._pieces)
        yield _counted(self._name, self._model, text, messages, self._finish_reason, self._usage)


_STREAM = {"stream": True}
_WITH_USAGE = {**_STREAM, "stream_options": {"include_usage": True}}


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    form = {"name": str(schema.get("title", "reply")), "schema": dict(schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _first_choice(response: Any) -> Any | None:
    choices = read(response, "choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _text(message: Any) -> Any:
    """The content of a message; of one in parts, as models that reason send it, the text of the answer."""
    content = read(message, "content")
    parts = [part for part in content if read(part, "type") == "text"] if isinstance(content, list) else []
    return "".join(str(read(part, "text")) for part in parts) if parts else content


def _counted(
    name: str, answered_by: Any, text: Any, messages: Sequence[Message], reason: Any, usage: Any
) -> Completion:
    """The completion with its usage. answered_by: the name that the server gave its model."""
    tokens = read(usage, "prompt_tokens"), read(usage, "completion_tokens")
    completion = counted_completion(
        name, "" if text is None else text, messages, *tokens, cut_off=cut_off(reason)
    )
    return replace(completion, model=model_name(answered_by, name))
