"""Middleware for LangChain's agents. It needs the package `langchain`: extra `langchain-agents`."""

# ruff: noqa: I001
from langchain_precise import _langchain as _langchain

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from langchain_precise.words import own_words
from precise_rag.errors import InputError
from precise_rag.evidence.tool_results import (
    READ_RESULT,
    READ_RESULT_DESCRIPTION,
    ToolResultPruner,
    excluded_names,
    question_of,
)


class ToolResultPruningMiddleware(AgentMiddleware[Any, Any, Any]):
    """Middleware that cuts the long results of tools down to what answers the user's question.

    It works for all tools of an agent: pages, files, logs, JSON. A cut result says how the rest is read, with
    a tool `read_result` that the middleware adds. Short results and errors are passed on as they are, and so
    are results that go to the user (`return_direct`) and artifacts.

    The question is the user's last message, after what the call itself looks for, such as its argument
    `query`.

    max_tokens: a result with more is cut to at most so many, by an estimate; at least 100.
    exclude_tools: names of tools whose results are never cut.
    reranker: scores the sentences; anything that `load_reranker` takes.
    max_results, keep_seconds: how many results are kept to be read, and how long: in memory, and read by
        references that cannot be guessed.

    The same as `llamaindex_precise.agents.prune_tool_results`.
    """

    @own_words
    def __init__(
        self,
        max_tokens: int = 1_000,
        *,
        exclude_tools: Iterable[str] = (),
        reranker: Any = "default",
        max_results: int = 100,
        keep_seconds: float = 3_600,
    ) -> None:
        super().__init__()
        self.exclude_tools = excluded_names(exclude_tools)
        self._pruner = ToolResultPruner(
            max_tokens, reranker=reranker, max_results=max_results, keep_seconds=keep_seconds
        )
        read = StructuredTool.from_function(self._read, name=READ_RESULT, description=READ_RESULT_DESCRIPTION)
        self.tools = [read]

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Call the tool, and cut its result if it is long."""
        return self._cut(request, handler(request))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Run `wrap_tool_call` without blocking the event loop."""
        return await run_in_executor(None, partial(self._cut, request, await handler(request)))

    def _read(self, reference: str, start: int = 0, question: str = "") -> str:
        try:
            return self._pruner.read(reference, start, question)
        except InputError as error:
            return f"Error: {error}"

    def _cut(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        name = request.tool_call["name"]
        goes_to_user = request.tool is not None and request.tool.return_direct
        if name == READ_RESULT or name in self.exclude_tools or goes_to_user:
            return result
        question = question_of(request.tool_call["args"], _last_question(request.state))
        if isinstance(result, ToolMessage):
            return self._message(result, question)
        update = result.update
        if isinstance(update, dict) and isinstance(update.get("messages"), list):
            messages = [
                self._message(one, question) if isinstance(one, ToolMessage) else one
                for one in update["messages"]
            ]
            return replace(result, update={**update, "messages": messages})
        return result

    def _message(self, message: ToolMessage, question: str) -> ToolMessage:
        if message.status == "error":
            return message
        content = message.content
        if isinstance(content, str):
            cut: Any = self._pruner.prune(content, question)
        else:
            cut = [self._block(block, question) for block in content]
        return message if cut == content else message.model_copy(update={"content": cut})

    def _block(self, block: Any, question: str) -> Any:
        """A block of content, cut if it is text."""
        if isinstance(block, str):
            return self._pruner.prune(block, question)
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            return {**block, "text": self._pruner.prune(block["text"], question)}
        return block


def _last_question(state: Any) -> str:
    """The text of the user's last message in the state of an agent; empty if there is none."""
    messages = state.get("messages", ()) if isinstance(state, dict) else getattr(state, "messages", ())
    asked = [one for one in messages if isinstance(one, HumanMessage)]
    last: BaseMessage | None = asked[-1] if asked else None
    return "" if last is None else str(last.text)
