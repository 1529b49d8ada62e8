"""Chat models that users already have, as one protocol: LlamaIndex, LangChain, or a plain function.

Recognised by their methods; no framework is imported until its own object is called. Calls run on
the caller's own thread and task, so a framework's callbacks and tracing context reach them.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.llm.completion import counted_completion
from precise_rag.llm.failures import translated
from precise_rag.llm.openai_chat import OpenAIChat
from precise_rag.protocols import LLM
from precise_rag.types import Completion, Message


def load_llm(source: Any) -> LLM:
    """`source` as an LLM.

    source: an LLM of ours, as it is; a LlamaIndex LLM; a LangChain chat model or any runnable from
    messages to a message; a function, plain or async, from a prompt string to a string, or from a
    sequence of Message if its parameter is called `messages` or annotated as anything but str; or
    the name of an OpenAI model, for OpenAIChat. Raises InputError for anything else.

    A plain function that is awaited runs in a thread, which cancelling cannot stop: what should end
    with its caller has to be async.
    """
    if isinstance(source, str):
        return OpenAIChat(source)
    if all(hasattr(source, method) for method in ("chat", "achat", "stream_chat", "metadata")):
        return _LlamaIndexLLM(source)
    if hasattr(source, "invoke") and hasattr(source, "ainvoke"):
        return _LangChainLLM(source)
    if isinstance(source, LLM):
        return source
    if callable(source) and not isinstance(source, type):
        return _FunctionLLM(source)
    raise InputError(
        f"cannot use a {type(source).__name__} as a language model; expected a model name, "
        "a LlamaIndex LLM, a LangChain chat model, a function from prompt to text, "
        "or an object with name, complete and acomplete"
    )


class _LlamaIndexLLM:
    def __init__(self, llm: Any) -> None:
        self._llm = llm
        metadata = llm.metadata
        self.name = str(getattr(metadata, "model_name", "") or type(llm).__name__)

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        with translated(self.name):
            return self._completion(self._llm.chat(self._chat(messages)), messages)

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        with translated(self.name):
            return self._completion(await self._llm.achat(self._chat(messages)), messages)

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        with translated(self.name):
            pieces: list[str] = []
            response = None
            for response in self._llm.stream_chat(self._chat(messages)):
                pieces.append(response.delta or "")
                yield pieces[-1]
            yield self._completion(response, messages, "".join(pieces))

    async def astream(self, messages: Sequence[Message]) -> AsyncIterator[str | Completion]:
        with translated(self.name):
            pieces: list[str] = []
            response = None
            async with aclosing(await self._llm.astream_chat(self._chat(messages))) as responses:
                async for response in responses:
                    pieces.append(response.delta or "")
                    yield pieces[-1]
            yield self._completion(response, messages, "".join(pieces))

    def _chat(self, messages: Sequence[Message]) -> list[Any]:
        message = require("llama_index.core.llms", extra="llamaindex").ChatMessage
        return [message(role=role, content=content) for role, content in messages]

    def _completion(self, response: Any, messages: Sequence[Message], text: str | None = None) -> Completion:
        if text is None:
            text = response.message.content
        raw = _read(response, "raw")
        usage = _read(raw, "usage") or _read(response, "additional_kwargs")
        return counted_completion(
            self.name, text, messages, _read(usage, "prompt_tokens"), _read(usage, "completion_tokens")
        )


class _LangChainLLM:
    def __init__(self, model: Any) -> None:
        self._model = model
        names = (getattr(model, field, None) for field in ("model_name", "model"))
        self.name = next((name for name in names if isinstance(name, str) and name), type(model).__name__)

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        with translated(self.name):
            return self._completion(self._model.invoke(_pairs(messages)), messages)

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        with translated(self.name):
            return self._completion(await self._model.ainvoke(_pairs(messages)), messages)

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        with translated(self.name):
            whole: Any = None
            for chunk in self._model.stream(_pairs(messages)):
                whole = chunk if whole is None else whole + chunk
                yield _message_text(chunk)
            yield self._completion(whole, messages)

    async def astream(self, messages: Sequence[Message]) -> AsyncIterator[str | Completion]:
        with translated(self.name):
            whole: Any = None
            async with aclosing(self._model.astream(_pairs(messages))) as chunks:
                async for chunk in chunks:
                    whole = chunk if whole is None else whole + chunk
                    yield _message_text(chunk)
            yield self._completion(whole, messages)

    def _completion(self, message: Any, messages: Sequence[Message]) -> Completion:
        usage = _read(message, "usage_metadata")
        return counted_completion(
            self.name,
            _message_text(message),
            messages,
            _read(usage, "input_tokens"),
            _read(usage, "output_tokens"),
        )


class _FunctionLLM:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes_messages = _takes_messages(function)
        self.name = getattr(function, "__name__", type(function).__name__)

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        with translated(self.name):
            text = self._call(messages)
            if inspect.isawaitable(text):
                text = _finished(text, self.name)
            return counted_completion(self.name, text, messages)

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        with translated(self.name):
            if inspect.iscoroutinefunction(self._function):
                text = await self._call(messages)
            else:
                text = await asyncio.to_thread(self._call, messages)
                text = await text if inspect.isawaitable(text) else text
            return counted_completion(self.name, text, messages)

    def _call(self, messages: Sequence[Message]) -> Any:
        prompt = tuple(messages) if self._takes_messages else "\n\n".join(m.content for m in messages)
        return self._function(prompt)


def _finished(awaitable: Any, name: str) -> Any:
    async def wait() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    raise InputError(f"{name} is asynchronous and an event loop is running here; await the a… method instead")


def _takes_messages(function: Callable[..., Any]) -> bool:
    try:
        parameter = next(iter(inspect.signature(function).parameters.values()), None)
    except ValueError:
        return False
    if parameter is None:
        return False
    return parameter.name == "messages" or parameter.annotation not in (
        inspect.Parameter.empty,
        str,
        "str",
        Any,
    )


def _pairs(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


def _message_text(message: Any) -> str:
    """The text of a LangChain message or chunk; content may be a string or a list of blocks."""
    content = message if isinstance(message, str) else _read(message, "content")
    if isinstance(content, list):
        return "".join(block if isinstance(block, str) else block.get("text", "") for block in content)
    return "" if content is None else str(content)


def _read(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
