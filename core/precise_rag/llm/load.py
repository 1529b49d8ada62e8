"""Load a language model from a name, a framework's object, or a function."""

from typing import Any

from precise_rag.checks import given_kind
from precise_rag.errors import InputError
from precise_rag.llm.framework import LangChainLLM, LlamaIndexLLM
from precise_rag.llm.function import FunctionLLM
from precise_rag.llm.openai import OpenAIChat
from precise_rag.protocols import LLM


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
