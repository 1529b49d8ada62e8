"""Tools for LlamaIndex's agents whose long results are cut down to what answers."""

from asyncio import to_thread
from collections.abc import Callable, Iterable, Sequence
from inspect import iscoroutinefunction
from typing import Any

from llama_index.core.llms import MessageRole, TextBlock
from llama_index.core.tools import AsyncBaseTool, BaseTool, FunctionTool, ToolOutput
from llama_index.core.tools.types import adapt_to_async_tool
from llama_index.core.workflow import Context

from precise_rag.checks import items_of, shown
from precise_rag.errors import InputError
from precise_rag.evidence.tool_results import READ_RESULT, ToolResultPruner, questions_of


def prune_tool_results(
    tools: Sequence[BaseTool | Callable[..., Any]],
    max_tokens: int = 1_000,
    *,
    exclude_tools: Iterable[str] = (),
    **options: Any,
) -> list[Any]:
    """Return tools whose long results are cut down to what answers the user's question.

    They take the places of the tools of an agent: `FunctionAgent(tools=prune_tool_results(tools))`. The last
    of them, `read_result`, reads the rest of a cut result. The question is the user's last message, after
    what the call itself looks for, such as its argument `query`; if that finds nothing likely, as "yes", the
    message before and other arguments count, too. Short results and errors are passed on as they are, and so
    are results that go to the user (`return_direct`) and `raw_output`.

    tools: of an agent; functions become tools as they do there. What is returned are tools (`BaseTool`); an
        agent's list may also hold functions, so that type checkers would take it for another type.
    exclude_tools: names of tools whose results are never cut.
    max_tokens: as for `ToolResultPruner`; so are the options `reranker`, `max_results` and `keep_seconds`.
    """
    if isinstance(tools, BaseTool) or not isinstance(tools, Sequence) or not all(map(callable, tools)):
        raise InputError(f"tools must be a list of tools or functions, got {shown(tools)}")
    excluded = frozenset(items_of("exclude_tools", exclude_tools, str))
    pruner = ToolResultPruner(max_tokens, **options)
    wrapped: list[BaseTool] = []
    for tool in map(_as_tool, tools):
        name = tool.metadata.get_name()
        if name == READ_RESULT:
            raise InputError(f"a tool is called {name} already; pass the tools themselves, and only once")
        is_whole = tool.metadata.return_direct or name in excluded
        wrapped.append(tool if is_whole else _PrunedTool(tool, pruner))
    read = FunctionTool.from_defaults(pruner.read, name=READ_RESULT, description=pruner.read_description)
    return [*wrapped, read]


class _PrunedTool(FunctionTool):
    """A tool whose long results are cut.

    It is a FunctionTool with an argument `run_context`, because an agent gives its context, which knows the
    user's message, to no other tools.
    """

    def __init__(self, tool: AsyncBaseTool, pruner: ToolResultPruner) -> None:
        super().__init__(fn=tool.call, async_fn=tool.acall, metadata=tool.metadata)
        self.requires_context, self.ctx_param_name = True, "run_context"
        self._tool, self._pruner = tool, pruner

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        return self._cut(self._tool.call(*args, **kwargs), questions_of({**dict(enumerate(args)), **kwargs}))

    async def acall(self, *args: Any, run_context: Context | None = None, **kwargs: Any) -> ToolOutput:
        memory = run_context and await run_context.store.get("memory", default=None)
        messages = await memory.aget_all() if memory else ()
        said = [one.content or "" for one in messages if one.role == MessageRole.USER]
        questions = questions_of({**dict(enumerate(args)), **kwargs}, said)
        if run_context and isinstance(self._tool, FunctionTool) and self._tool.ctx_param_name:
            kwargs[self._tool.ctx_param_name] = run_context
        return await to_thread(self._cut, await self._tool.acall(*args, **kwargs), questions)

    def _cut(self, output: ToolOutput, questions: tuple[str, str]) -> ToolOutput:
        if output.is_error:
            return output
        blocks = [
            TextBlock(text=self._pruner.prune(one.text, *questions)) if isinstance(one, TextBlock) else one
            for one in output.blocks
        ]
        return output if blocks == output.blocks else output.model_copy(update={"blocks": blocks})


def _as_tool(tool: Any) -> AsyncBaseTool:
    if isinstance(tool, BaseTool):
        return adapt_to_async_tool(tool)
    return FunctionTool.from_defaults(**{"async_fn" if iscoroutinefunction(tool) else "fn": tool})
