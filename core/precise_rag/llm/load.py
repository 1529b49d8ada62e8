"""Load a language model from a name, a framework's object, or a function."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from precise_rag._worker import Worker
from precise_rag.checks import given_kind
from precise_rag.errors import InputError
from precise_rag.failures import llm_errors
from precise_rag.llm.framework import LangChainLLM, LlamaIndexLLM
from precise_rag.llm.openai import OpenAIChat
from precise_rag.llm.usage import counted_completion
from precise_rag.protocols import LLM
from precise_rag.redaction import remember_environment
from precise_rag.types import Completion, Message, Schema


def load_llm(source: Any, *, argument: str = "llm") -> LLM:
    """Return `source` as an LLM. No framework is imported until its own object is called.

    source: one of
    - the name of an OpenAI chat model, for `OpenAIChat`;
    - a LlamaIndex LLM, or a LangChain chat model or runnable from messages to a message;
    - an object with `name`, `complete` and `acomplete` (the LLM protocol), which is returned unchanged;
    - a function, plain or async, that takes the prompt as a string and returns a string. If its
      parameter has an annotation other than `str`, such as `Sequence[Message]`, it gets a sequence of
      Message instead.

    argument: name of the argument that had it, for the error.
    Raises InputError for anything else.
    A plain function that is awaited runs in a thread, and cancelling does not stop it; pass an async
    function if it should.
    """
    if isinstance(source, str):
        return OpenAIChat(source)
    if all(hasattr(source, method) for method in ("chat", "achat", "stream_chat", "metadata")):
        return LlamaIndexLLM(source)
    if hasattr(source, "invoke") and hasattr(source, "ainvoke"):
        return LangChainLLM(source)
    if isinstance(source, LLM):
        return source
    if callable(source) and not isinstance(source, type):
        return FunctionLLM(source)
    raise InputError(
        f"{argument} must be the name of a model, a LlamaIndex LLM, a LangChain chat model, a function from "
        f"prompt to text, or an object with name, complete and acomplete, got {given_kind(source)}"
    )


class FunctionLLM:
    """A function as an LLM: see `load_llm` for its arguments. Its tokens are estimated."""

    def __init__(self, function: Callable[..., Any]) -> None:
        remember_environment()
        self._function = function
        self._takes_messages = _takes_messages(function)
        self.name = getattr(function, "__name__", type(function).__name__)

    def complete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """Call the function. Raises InputError if it is async and an event loop is running."""
        with llm_errors(self):
            text = self._call(messages)
            if inspect.isawaitable(text):
                text = _run(text, self.name)
            return counted_completion(self.name, text, messages)

    async def acomplete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """Await the function, or call it in a thread if it is not async."""
        with llm_errors(self):
            if inspect.iscoroutinefunction(self._function):
                text = await self._call(messages)
            else:
                with closing(Worker()) as worker:  # it is left behind if this is cancelled
                    text = await asyncio.wrap_future(worker.submit(partial(self._call, messages)))
                text = await text if inspect.isawaitable(text) else text
            return counted_completion(self.name, text, messages)

    def _call(self, messages: Sequence[Message]) -> Any:
        prompt = tuple(messages) if self._takes_messages else "\n\n".join(m.content for m in messages)
        return self._function(prompt)


def _run(awaitable: Any, name: str) -> Any:
    """The result of `awaitable`, run to its end in an event loop made for it."""

    async def wait() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    raise InputError(
        f"{name} is an async function and an event loop is running; "
        "await the asynchronous method instead (acomplete, aanswer, …)"
    )


def _takes_messages(function: Callable[..., Any]) -> bool:
    try:
        parameter = next(iter(inspect.signature(function).parameters.values()), None)
    except ValueError:
        return False
    return getattr(parameter, "annotation", str) not in (inspect.Parameter.empty, str, "str", Any, "Any")
