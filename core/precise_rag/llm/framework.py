"""LlamaIndex and LangChain chat models as language models.

A pipeline makes synchronous calls in a thread, in a copy of the caller's context, so the framework's
callbacks and tracing see them.
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from precise_rag._extras import require
from precise_rag.failures import OptionalFeature, llm_errors
from precise_rag.llm.usage import counted_completion, read, readable_messages, reported_cut_off
from precise_rag.redaction import remember_environment, remember_fields
from precise_rag.types import Completion, CutOff, Message, Schema


class LlamaIndexLLM:
    """A LlamaIndex LLM. Its own token counts are used; without them, estimates."""

    def __init__(self, llm: Any) -> None:
        self._llm, self.max_retries = llm, getattr(llm, "max_retries", 0)
        self.name = str(getattr(llm.metadata, "model_name", "") or type(llm).__name__)
        remember_environment()
        remember_fields(vars(llm))
        self._schemas = OptionalFeature(self.name)

    def complete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """Return one completion. Every exception of the model is raised as an LLMError.

        schema: a model that calls functions must call one with this JSON schema; others ignore it.
        """
        chat, tool = _chat(messages), _reply_tool(self._llm, schema)

        def plain() -> Completion:
            return self._completion(self._llm.chat(chat), messages)

        def structured() -> Completion:
            response = self._llm.chat_with_tools([tool], chat_history=chat, tool_required=True)
            return self._completion(response, messages, _tool_reply(self._llm, response))

        with llm_errors(self):
            return self._schemas.ask(structured if tool else None, plain)

    async def acomplete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """`complete` without blocking the event loop."""
        chat, tool = _chat(messages), _reply_tool(self._llm, schema)

        async def plain() -> Completion:
            return self._completion(await self._llm.achat(chat), messages)

        async def structured() -> Completion:
            response = await self._llm.achat_with_tools([tool], chat_history=chat, tool_required=True)
            return self._completion(response, messages, _tool_reply(self._llm, response))

        with llm_errors(self):
            return await self._schemas.aask(structured if tool else None, plain)

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the reply, then the Completion."""
        pieces: list[str] = []
        response: Any = None
        cut: CutOff = ""
        with llm_errors(self):
            for response in self._llm.stream_chat(_chat(messages)):
                cut = cut or _chat_cut_off(response)
                pieces.append(response.delta or "")
                yield pieces[-1]
            yield replace(self._completion(response, messages, "".join(pieces)), cut_off=cut)

    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop."""
        pieces: list[str] = []
        response: Any = None
        cut: CutOff = ""
        with llm_errors(self):
            async with aclosing(await self._llm.astream_chat(_chat(messages))) as responses:
                async for response in responses:
                    cut = cut or _chat_cut_off(response)
                    pieces.append(response.delta or "")
                    yield pieces[-1]
            yield replace(self._completion(response, messages, "".join(pieces)), cut_off=cut)

    def _completion(self, response: Any, messages: Sequence[Message], text: str | None = None) -> Completion:
        usage = read(read(response, "raw"), "usage") or read(response, "additional_kwargs")
        return counted_completion(
            self.name,
            response.message.content if text is None else text,
            messages,
            read(usage, "prompt_tokens"),
            read(usage, "completion_tokens"),
            _chat_cut_off(response),
        )


class LangChainLLM:
    """A LangChain chat model or runnable. Its own token counts are used; without them, estimates."""

    def __init__(self, model: Any) -> None:
        self._model, self.max_retries = model, getattr(model, "max_retries", 0)
        names = (getattr(model, field, None) for field in ("model_name", "model"))
        self.name = next((name for name in names if isinstance(name, str) and name), type(model).__name__)
        remember_environment()
        remember_fields(vars(model))
        self._schemas = OptionalFeature(self.name)

    def complete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """Return one completion. Every exception of the model is raised as an LLMError.

        schema: a model with structured output replies in this JSON schema; others get the prompt alone.
        """
        turns, model = readable_messages(messages), _structured_model(self._model, schema)

        def asked(model: Any, made: Callable[..., Completion]) -> Completion:
            return made(model.invoke(turns), messages)

        with llm_errors(self):
            structured = partial(asked, model, self._parsed) if model else None
            return self._schemas.ask(structured, partial(asked, self._model, self._completion))

    async def acomplete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """`complete` without blocking the event loop."""
        turns, model = readable_messages(messages), _structured_model(self._model, schema)

        async def asked(model: Any, made: Callable[..., Completion]) -> Completion:
            return made(await model.ainvoke(turns), messages)

        with llm_errors(self):
            structured = partial(asked, model, self._parsed) if model else None
            return await self._schemas.aask(structured, partial(asked, self._model, self._completion))

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the reply, then the Completion."""
        whole: Any = None
        with llm_errors(self):
            for chunk in self._model.stream(readable_messages(messages)):
                whole = chunk if whole is None else whole + chunk
                yield _message_text(chunk)
            yield self._completion(whole, messages)

    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop."""
        whole: Any = None
        with llm_errors(self):
            async with aclosing(self._model.astream(readable_messages(messages))) as chunks:
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


def _chat(messages: Sequence[Message]) -> list[Any]:
    message = require("llama_index.core.llms", extra="llamaindex").ChatMessage
    return [message(role=role, content=content) for role, content in readable_messages(messages)]


def _chat_cut_off(response: Any) -> CutOff:
    """Why the reply that a LlamaIndex response carries was cut off, wherever its server says so."""
    raw = read(response, "raw")
    choices = read(raw, "choices")
    return reported_cut_off(
        *(choices if isinstance(choices, list) else ()), raw, read(response, "additional_kwargs")
    )


def _reply_tool(llm: Any, schema: Schema | None) -> Any | None:
    """The LlamaIndex tool whose arguments are the reply; None if the model calls no functions."""
    calls = read(llm.metadata, "is_function_calling_model") and hasattr(llm, "chat_with_tools")
    if schema is None or not calls:
        return None
    pydantic = require("pydantic", extra="llamaindex")
    settings = pydantic.ConfigDict(extra="allow", json_schema_extra=lambda made: made.update(schema))
    name = str(schema.get("title", "reply"))
    return require("llama_index.core.tools", extra="llamaindex").FunctionTool.from_defaults(
        fn=lambda **reply: reply,
        name=name,
        description="Takes the reply.",
        fn_schema=pydantic.create_model(name, __config__=settings),
    )


def _tool_reply(llm: Any, response: Any) -> str | None:
    """The arguments of the tool that a LlamaIndex model called, as JSON; None without a call."""
    with suppress(Exception):  # every model reads its own calls, and some fail on a broken one
        for call in llm.get_tool_calls_from_response(response, error_on_no_tool_call=False):
            return json.dumps(call.tool_kwargs, ensure_ascii=False)
    return None


def _structured_model(model: Any, schema: Schema | None) -> Any:
    """The LangChain runnable that replies in the schema; None if the model has none."""
    if schema is not None and hasattr(model, "with_structured_output"):
        with suppress(Exception):  # NotImplementedError, or whatever an integration has against the schema
            return model.with_structured_output({"title": "reply", **schema}, include_raw=True)
    return None


def _message_text(message: Any) -> str:
    """The text of a LangChain message or chunk, or of a runnable that returns a string."""
    return str(message if isinstance(message, str) else read(message, "text") or "")
