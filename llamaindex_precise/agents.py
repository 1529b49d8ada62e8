"""Tools for LlamaIndex's agents whose long results are cut down to what answers."""

import inspect
from asyncio import to_thread
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llama_index.core.llms import TextBlock
from llama_index.core.tools import AsyncBaseTool, BaseTool, FunctionTool, ToolOutput
from llama_index.core.tools.types import adapt_to_async_tool

from llamaindex_precise.words import own_words
from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.evidence.tool_results import (
    READ_RESULT,
    READ_RESULT_DESCRIPTION,
    ToolResultPruner,
    excluded_names,
    question_of,
)

_CONTEXT = "context_of_the_run"
"""The argument by which an agent gives its context to a tool that has no such argument of its own."""


@own_words
def prune_tool_results(
    tools: Sequence[BaseTool | Callable[..., Any]],
    max_tokens: int = 1_000,
    *,
    exclude_tools: Iterable[str] = (),
    reranker: Any = "default",
    max_results: int = 100,
    keep_seconds: float = 3_600,
) -> list[BaseTool]:
    """Return tools whose long results are cut down to what answers the user's question.

    They take the places of the tools of an agent: `FunctionAgent(tools=prune_tool_results(tools))`. A cut
    result says how the rest is read, with a tool `read_result` that is the last of them. Short results and
    errors are passed on as they are, and so are results that go to the user (`return_direct`) and
    `raw_output`.

    The question is the user's last message, after what the call itself looks for, such as its argument
    `query`.

    tools: of an agent; functions become tools as they do there.
    max_tokens: a result with more is cut to at most so many, by an estimate; at least 100.
    exclude_tools: names of tools whose results are never cut.
    reranker: scores the sentences; anything that `load_reranker` takes.
    max_results, keep_seconds: how many results are kept to be read, and how long: in memory, and read by
        references that cannot be guessed.

    The same as `langchain_precise.agents.ToolResultPruningMiddleware`.
    """
    if isinstance(tools, BaseTool) or not isinstance(tools, Sequence):
        raise InputError(f"tools must be a list of tools or functions, got {shown(tools)}")
    excluded = excluded_names(exclude_tools)
    pruner = ToolResultPruner(
        max_tokens, reranker=reranker, max_results=max_results, keep_seconds=keep_seconds
    )
    wrapped: list[BaseTool] = []
    for given in tools:
        tool = _as_tool(given)
        is_cut = not (tool.metadata.return_direct or tool.metadata.get_name() in excluded)
        if tool.metadata.get_name() == READ_RESULT:
            raise InputError(
                f"a tool is called {READ_RESULT} already; pass the tools themselves, and only once"
            )
        wrapped.append(_PrunedTool(tool, pruner) if is_cut else tool)
    return [*wrapped, _reader(pruner)]


class _PrunedTool(FunctionTool):
    """A tool whose long results are cut. It is a FunctionTool, since an agent gives others no context."""

    def __init__(self, tool: AsyncBaseTool, pruner: ToolResultPruner) -> None:
        super().__init__(fn=tool.call, async_fn=tool.acall, metadata=tool.metadata)
        self._tool, self._pruner = tool, pruner
        self._takes_context = isinstance(tool, FunctionTool) and tool.requires_context
        own = tool.ctx_param_name if isinstance(tool, FunctionTool) else None
        self.requires_context, self.ctx_param_name = True, own or _CONTEXT

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Call the tool, and cut its result if it is long."""
        _, given = self._parted(kwargs)
        return self._cut(self._tool.call(*args, **given), question_of(_named(args, kwargs)))

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Call the tool, and cut its result if it is long, without blocking the event loop."""
        context, given = self._parted(kwargs)
        output = await self._tool.acall(*args, **given)
        asked = "" if context is None else await context.store.get("user_msg_str", default="")
        return await to_thread(self._cut, output, question_of(_named(args, kwargs), asked or ""))

    def _parted(self, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The context of the run, and the arguments of the tool."""
        context = kwargs.get(self.ctx_param_name or _CONTEXT)
        others = {name: value for name, value in kwargs.items() if name != self.ctx_param_name}
        return context, kwargs if self._takes_context else others

    def _cut(self, output: ToolOutput, question: str) -> ToolOutput:
        if output.is_error:
            return output
        blocks = [
            TextBlock(text=self._pruner.prune(block.text, question))
            if isinstance(block, TextBlock)
            else block
            for block in output.blocks
        ]
        if blocks == output.blocks:
            return output
        return ToolOutput(
            blocks=blocks,
            tool_name=output.tool_name,
            raw_input=output.raw_input,
            raw_output=output.raw_output,
        )


def _reader(pruner: ToolResultPruner) -> FunctionTool:
    def read(reference: str, start: int = 0, question: str = "") -> str:
        try:
            return pruner.read(reference, start, question)
        except InputError as error:
            return f"Error: {error}"

    return FunctionTool.from_defaults(read, name=READ_RESULT, description=READ_RESULT_DESCRIPTION)


def _as_tool(given: Any) -> AsyncBaseTool:
    if isinstance(given, BaseTool):
        return adapt_to_async_tool(given)
    if not callable(given):
        raise InputError(f"tools must be a list of tools or functions, got {shown(given)} in it")
    if inspect.iscoroutinefunction(given):
        return FunctionTool.from_defaults(async_fn=given)
    return FunctionTool.from_defaults(given)


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**{str(place): value for place, value in enumerate(args)}, **kwargs}
