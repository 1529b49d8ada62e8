"""LlamaIndex and LangChain chat models as language models.

Calls run on the thread and task of the caller, so the framework's callbacks and tracing see them.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from precise_rag._extras import require
from precise_rag.llm.failures import translated
from precise_rag.llm.usage import counted_completion
from precise_rag.types import Completion, Message


class LlamaIndexLLM:
    """A LlamaIndex LLM. Token counts are those it reports, else estimates."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm
        metadata = llm.metadata
        self.name = str(getattr(metadata, "model_name", "") or type(llm).__name__)

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return one completion. Raises LLMError, whatever the model raised."""
        with translated(self.name):
            return self._completion(self._llm.chat(self._chat(messages)), messages)

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """`complete` without blocking the event loop."""
        with translated(self.name):
            return self._completion(await self._llm.achat(self._chat(messages)), messages)

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the reply, then the Completion."""
        with translated(self.name):
            pieces: list[str] = []
            response = None
            for response in self._llm.stream_chat(self._chat(messages)):
                pieces.append(response.delta or "")
                yield pieces[-1]
            yield self._completion(response, messages, "".join(pieces))

    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop."""
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


class LangChainLLM:
    """A LangChain chat model or runnable. Token counts are those it reports, else estimates."""

    def __init__(self, model: Any) -> None:
        self._model = model
        names = (getattr(model, field, None) for field in ("model_name", "model"))
        self.name = next((name for name in names if isinstance(name, str) and name), type(model).__name__)

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return one completion. Raises LLMError, whatever the model raised."""
        with translated(self.name):
            return self._completion(self._model.invoke(_pairs(messages)), messages)

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """`complete` without blocking the event loop."""
        with translated(self.name):
            return self._completion(await self._model.ainvoke(_pairs(messages)), messages)

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the pieces of the reply, then the Completion."""
        with translated(self.name):
            whole: Any = None
            for chunk in self._model.stream(_pairs(messages)):
                whole = chunk if whole is None else whole + chunk
                yield _message_text(chunk)
            yield self._completion(whole, messages)

    async def astream(self, messages: Sequence[Message]) -> AsyncGenerator[str | Completion, None]:
        """`stream` without blocking the event loop."""
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
