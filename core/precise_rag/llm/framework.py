"""LlamaIndex and LangChain chat models as language models.

Calls run on the thread and task of the caller, so the framework's callbacks and tracing see them. With
`Budget(seconds=…)`, a synchronous call runs in another thread, in a copy of the caller's context. A JSON
schema goes to the models that take one (`precise_rag.llm.structured`).
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from precise_rag._extras import require
from precise_rag.llm.failures import raises_llm_errors
from precise_rag.llm.finish import NOT_CUT, CutOff, read, reported_cut_off
from precise_rag.llm.structured import SchemaCalls, reply_tool, structured_model, tool_reply
from precise_rag.llm.usage import counted_completion, readable_messages
from precise_rag.redaction import remember_environment
from precise_rag.types import Completion, Message


class LlamaIndexLLM:
    """A LlamaIndex LLM. Its own token counts are used; without them, estimates.

    max_reply_tokens: (attribute) the model's `max_tokens`, if it has one.
    """

    def __init__(self, llm: Any) -> None:
        self._llm = llm
        metadata = llm.metadata
        self.name = str(getattr(metadata, "model_name", "") or type(llm).__name__)
        remember_environment()
        self.max_reply_tokens = read(llm, "max_tokens")
        self._schema_calls = SchemaCalls(self.name)

    @raises_llm_errors
    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return one completion. Every exception of the model is raised as an LLMError.

        schema: a model that calls functions must call one with this JSON schema; others ignore it.
        """
        chat = self._chat(messages)

        def plain() -> Completion:
            return self._completion(self._llm.chat(chat), messages)

        if (tool := reply_tool(self._llm, schema)) is None:
            return plain()

        def structured() -> Completion:
            response = self._llm.chat_with_tools([tool], chat_history=chat, tool_required=True)
            return self._completion(response, messages, tool_reply(self._llm, response))

        return self._schema_calls.ask(structured, plain)

    @raises_llm_errors
    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """`complete` without blocking the event loop."""
        chat = self._chat(messages)

        async def plain() -> Completion:
            return self._completion(await self._llm.achat(chat), messages)

        if (tool := reply_tool(self._llm, schema)) is None:
            return await plain()

        async def structured() -> Completion:
            response = await self._llm.achat_with_tools([tool], chat_history=chat, tool_required=True)
            return self._completion(response, messages, tool_reply(self._llm, response))

        return await self._schema_calls.aask(structured, plain)

    @raises_llm_errors
    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the reply, then the Completion."""
        pieces: list[str] = []
        response, cut = None, NOT_CUT
        for response in self._llm.stream_chat(self._chat(messages)):
            cut = cut or _chat_cut_off(response)
            pieces.append(response.delta or "")
            yield pieces[-1]
        yield replace(self._completion(response, messages, "".join(pieces)), cut_off=cut)

    @raises_llm_errors
    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop."""
        pieces: list[str] = []
        response, cut = None, NOT_CUT
        async with aclosing(await self._llm.astream_chat(self._chat(messages))) as responses:
            async for response in responses:
                cut = cut or _chat_cut_off(response)
                pieces.append(response.delta or "")
                yield pieces[-1]
        yield replace(self._completion(response, messages, "".join(pieces)), cut_off=cut)

    def _chat(self, messages: Sequence[Message]) -> list[Any]:
        message = require("llama_index.core.llms", extra="llamaindex").ChatMessage
        return [message(role=role, content=content) for role, content in readable_messages(messages)]

    def _completion(self, response: Any, messages: Sequence[Message], text: str | None = None) -> Completion:
        if text is None:
            text = response.message.content
        usage = read(read(response, "raw"), "usage") or read(response, "additional_kwargs")
        return counted_completion(
            self.name,
            text,
            messages,
            read(usage, "prompt_tokens"),
            read(usage, "completion_tokens"),
            _chat_cut_off(response),
        )


class LangChainLLM:
    """A LangChain chat model or runnable. Its own token counts are used; without them, estimates.

    max_reply_tokens: (attribute) the model's `max_tokens`, if it has one.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        names = (getattr(model, field, None) for field in ("model_name", "model"))
        self.name = next((name for name in names if isinstance(name, str) and name), type(model).__name__)
        remember_environment()
        self.max_reply_tokens = read(model, "max_tokens")
        self._schema_calls = SchemaCalls(self.name)

    @raises_llm_errors
    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return one completion. Every exception of the model is raised as an LLMError.

        schema: a model with structured output replies in this JSON schema; others ignore it.
        """
        pairs = _pairs(messages)

        def plain() -> Completion:
            return self._completion(self._model.invoke(pairs), messages)

        if (model := structured_model(self._model, schema)) is None:
            return plain()
        return self._schema_calls.ask(lambda: self._parsed(model.invoke(pairs), messages), plain)

    @raises_llm_errors
    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """`complete` without blocking the event loop."""
        pairs = _pairs(messages)

        async def plain() -> Completion:
            return self._completion(await self._model.ainvoke(pairs), messages)

        if (model := structured_model(self._model, schema)) is None:
            return await plain()

        async def structured() -> Completion:
            return self._parsed(await model.ainvoke(pairs), messages)

        return await self._schema_calls.aask(structured, plain)

    @raises_llm_errors
    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the reply, then the Completion."""
        whole: Any = None
        for chunk in self._model.stream(_pairs(messages)):
            whole = chunk if whole is None else whole + chunk
            yield _message_text(chunk)
        yield self._completion(whole, messages)

    @raises_llm_errors
    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop."""
        whole: Any = None
        async with aclosing(self._model.astream(_pairs(messages))) as chunks:
            async for chunk in chunks:
                whole = chunk if whole is None else whole + chunk
                yield _message_text(chunk)
        yield self._completion(whole, messages)

    def _parsed(self, reply: Any, messages: Sequence[Message]) -> Completion:
        """The completion of a structured reply; its own text where LangChain could not parse it."""
        raw, parsed = reply["raw"], reply["parsed"]
        text = json.dumps(parsed, ensure_ascii=False) if isinstance(parsed, Mapping) else None
        return self._completion(raw, messages, text)

    def _completion(self, message: Any, messages: Sequence[Message], text: str | None = None) -> Completion:
        usage = read(message, "usage_metadata")
        return counted_completion(
            self.name,
            _message_text(message) if text is None else text,
            messages,
            read(usage, "input_tokens"),
            read(usage, "output_tokens"),
            reported_cut_off(read(message, "response_metadata"), read(message, "additional_kwargs")),
        )


def _chat_cut_off(response: Any) -> CutOff:
    """Why the reply that a LlamaIndex response carries was cut off, wherever its server says so."""
    raw = read(response, "raw")
    choices = read(raw, "choices")
    return reported_cut_off(
        *(choices if isinstance(choices, list) else ()), raw, read(response, "additional_kwargs")
    )


def _pairs(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in readable_messages(messages)]


def _message_text(message: Any) -> str:
    """The text of a LangChain message or chunk; content may be a string or a list of blocks."""
    content = message if isinstance(message, str) else read(message, "content")
    if isinstance(content, list):
        return "".join(map(_block_text, content))
    return "" if content is None else str(content)


def _block_text(block: Any) -> str:
    text = block if isinstance(block, str) else read(block, "text")
    return text if isinstance(text, str) else ""
