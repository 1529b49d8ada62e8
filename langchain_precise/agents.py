"""Middleware for LangChain's agents. It needs the package `langchain`."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from pydantic import BaseModel

from precise_rag.checks import items_of
from precise_rag.evidence.tool_results import READ_RESULT, ToolResultPruner, questions_of

ToolResult: TypeAlias = ToolMessage | Command[Any]
"""What a tool returns to an agent."""


class _Part(BaseModel):
    reference: str
    start: int = 0
    question: str = ""


class ToolResultPruningMiddleware(AgentMiddleware[Any, Any, Any]):
    """Middleware that cuts the long results of tools down to what answers the user's question.

    It works for all tools of an agent, and adds one, `read_result`, which reads the rest of a cut result. The
    question is the user's last message, after what the call itself looks for, such as its argument `query`;
    if that finds nothing likely, as "yes", the message before and other arguments count, too. Short results
    and errors are passed on as they are, and so are results for the user (`return_direct`) and artifacts.

    exclude_tools: names of tools whose results are never cut.
    max_tokens: as for `ToolResultPruner`; so are the options `reranker`, `max_results` and `keep_seconds`.
    """

    def __init__(self, max_tokens: int = 1_000, *, exclude_tools: Iterable[str] = (), **options: Any) -> None:
        super().__init__()
        self.exclude_tools = frozenset(items_of("exclude_tools", exclude_tools, str))
        self._pruner = ToolResultPruner(max_tokens, **options)
        read = StructuredTool.from_function(
            self._pruner.read, name=READ_RESULT, description=self._pruner.read_description, args_schema=_Part
        )
        self.tools = [read]

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Call the tool, and cut its result if it is long."""
        return self._cut(request, handler(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run `wrap_tool_call` without blocking the event loop."""
        return await run_in_executor(None, partial(self._cut, request, await handler(request)))

    def _cut(self, request: ToolCallRequest, result: ToolResult) -> ToolResult:
        name, tool = request.tool_call["name"], request.tool
        if name in (READ_RESULT, *self.exclude_tools) or (tool is not None and tool.return_direct):
            return result
        said = [str(one.text) for one in request.state.get("messages", ()) if isinstance(one, HumanMessage)]
        questions = questions_of(request.tool_call["args"], said)
        if isinstance(result, ToolMessage):
            cut: ToolMessage = self._message(result, questions)
            return cut
        if not isinstance(result.update, dict):
            return result
        messages = [self._message(one, questions) for one in result.update.get("messages", ())]
        return replace(result, update=result.update | ({"messages": messages} if messages else {}))

    def _message(self, message: Any, questions: tuple[str, str]) -> Any:
        if not isinstance(message, ToolMessage) or message.status == "error":
            return message
        whole = message.content
        one = isinstance(whole, str)
        cut = self._block(whole, questions) if one else [self._block(block, questions) for block in whole]
        return message if cut == whole else message.model_copy(update={"content": cut})

    def _block(self, block: Any, questions: tuple[str, str]) -> Any:
        if isinstance(block, str):
            return self._pruner.prune(block, *questions)
        text = block.get("text") if block.get("type") == "text" else None
        return {**block, "text": self._pruner.prune(text, *questions)} if isinstance(text, str) else block
