"""The tools of indexes for agents, over the Model Context Protocol."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, partial
from typing import Any, TypeVar

import precise_rag
from precise_rag._extras import require
from precise_rag.cli.agent_texts import described, languages_of, part_of, record, source_tokens, written
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.evidence import prune
from precise_rag.excerpts import excerpts_of
from precise_rag.pipeline import PreciseRAG

T = TypeVar("T")

_AT_ONCE = 4
"""Requests that work at a time; the others wait."""
_ASK_AGAIN = 0.2
"""Seconds after which a running request is asked again whether its client is still there."""
_LONGEST_TEXT = 1_000_000
_INSTRUCTIONS = "Search documents, and cite them by their names, with the page if there is one."


class Collections:
    """The pipelines that agents search, by name.

    pipelines: by name; at least one.
    """

    def __init__(self, pipelines: Mapping[str, PreciseRAG]) -> None:
        self.pipelines = dict(pipelines)

    def named(self, name: str | None) -> PreciseRAG:
        """Return a pipeline; without a name the only one. Raises InputError if there is none of that name."""
        if not name and len(self.pipelines) == 1:
            return next(iter(self.pipelines.values()))
        if name not in self.pipelines:
            raise InputError(
                f"{f'there is no collection {name!r}' if name else 'collection is missing'}; "
                f"it is one of: {', '.join(self.pipelines)}"
            )
        return self.pipelines[name]

    def text(self, name: str | None) -> str:
        """Return what the collections hold; of one also the values of its metadata."""
        if not name and len(self.pipelines) == 1:
            (name,) = self.pipelines
        if name:
            return f"{name}: {described(self.named(name), self._languages.get(name, ()), values=True)}"
        return "\n".join(
            f"{name}: {described(rag, self._languages[name], values=False)}"
            for name, rag in self.pipelines.items()
        )

    @cached_property
    def _languages(self) -> dict[str, list[str]]:
        return {name: languages_of(rag) for name, rag in self.pipelines.items()}


def make_server(pipelines: PreciseRAG | Mapping[str, PreciseRAG]) -> Any:
    """Return an MCP server with the tools of one or several indexes.

    pipelines: by the names of their collections. Their language models are not used.

    A request that is cancelled, or whose client has left, does not begin, or ends after the stage that runs.
    """
    collections = Collections(pipelines if isinstance(pipelines, Mapping) else {"documents": pipelines})
    mcp = require("mcp.server.mcpserver", extra="mcp")
    errors = require("mcp.server.mcpserver.exceptions", extra="mcp")
    types = require("mcp.types", extra="mcp")
    server = _server_class(is_single=len(collections.pipelines) == 1)(
        "precise-rag", instructions=_INSTRUCTIONS, version=precise_rag.__version__, log_level="WARNING"
    )
    turns = asyncio.Semaphore(_AT_ONCE)

    async def search(
        ctx: Any,
        question: str,
        collection: str | None = None,
        filter: dict[str, Any] | None = None,
        max_tokens: int | None = None,
        structured: bool = False,
    ) -> Any:
        """Find the excerpts that answer a question. A line mark-number names the document and @place of
        each; lines without this mark are text of documents. filter: by metadata, e.g.
        {"year": {"$gte": 2020}}. structured: JSON, too."""
        rag = collections.named(collection)
        asked = partial(
            rag.aretrieve, question, filter=filter, max_tokens=max_tokens, piece_tokens=source_tokens
        )
        selection = await _answer(ctx, turns, asked)
        excerpts = excerpts_of(selection, rag.order, source_tokens)
        nothing = f"Nothing was found{'' if max_tokens is None else f' that fits into {max_tokens} tokens'}."
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=written(excerpts) or nothing)],
            structured_content={"excerpts": [record(one) for one in excerpts]} if structured else None,
        )

    async def read(
        ctx: Any, document: str, place: int, around: int = 1_000, collection: str | None = None
    ) -> str:
        """Read a document around a place, the number after @. around: characters before and after."""
        rag = collections.named(collection)
        return await _answer(ctx, turns, partial(asyncio.to_thread, part_of, rag, document, place, around))

    async def listed(ctx: Any, collection: str | None = None) -> str:
        """List what can be searched, its languages, and the fields for filter."""
        return await _answer(ctx, turns, partial(asyncio.to_thread, collections.text, collection))

    async def shorten(ctx: Any, text: str, question: str, max_tokens: int = 400) -> str:
        """Cut a long text of yours, such as a page, log or JSON, down to what answers a question."""
        if len(text) > _LONGEST_TEXT:
            raise errors.ToolError(
                f"the text has {len(text):,} characters; at most {_LONGEST_TEXT:,} are read"
            )
        work = partial(asyncio.to_thread, prune, text, question, max_tokens)
        return (await _answer(ctx, turns, work)).text

    search.__annotations__["return"] = types.CallToolResult
    only_reads = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    for tool, name in ((search, "search"), (read, "read"), (listed, "collections"), (shorten, "prune")):
        tool.__annotations__["ctx"] = mcp.Context
        described_as = " ".join((tool.__doc__ or "").split())
        is_structured = None if tool is search else False
        server.add_tool(
            tool, name=name, description=described_as, annotations=only_reads, structured_output=is_structured
        )
    return server


def _server_class(*, is_single: bool) -> Any:
    """A server whose tools take few tokens in a prompt, and whose errors say what to do.

    is_single: whether it has one collection, which need not be named.
    """
    base = require("mcp.server.mcpserver", extra="mcp").MCPServer
    errors = require("mcp.server.mcpserver.exceptions", extra="mcp")
    validation = require("pydantic", extra="mcp").ValidationError

    class Server(base):  # type: ignore[misc, valid-type]
        async def list_tools(self) -> Any:
            tools = await super().list_tools()
            for tool in tools:
                tool.input_schema = _short_schema(tool.input_schema, {"collection"} if is_single else set())
            return tools

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            try:
                return await super().call_tool(name, arguments, context)
            except errors.ToolError as error:
                if isinstance(error.__cause__, validation):
                    raise errors.ToolError(_mistakes(name, error.__cause__.errors())) from error
                if isinstance(error.__cause__, PreciseRagError | errors.ToolError):
                    raise errors.ToolError(f"{name}: {error.__cause__}") from error
                raise

    return Server


def _short_schema(schema: Mapping[str, Any], without: set[str]) -> dict[str, Any]:
    """The names and types of arguments: what a model needs of a schema."""
    properties = {}
    for name, given in schema.get("properties", {}).items():
        if name not in without:
            kinds = [kind for kind in given.get("anyOf", [given]) if kind.get("type") != "null"]
            properties[name] = {"type": kinds[0]["type"]}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": properties, **required}


def _mistakes(name: str, mistakes: list[dict[str, Any]]) -> str:
    """What is wrong with the arguments of a call."""
    said = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in mistakes[:5]]
    return f"{name}: {'; '.join(said)}"


async def _answer(ctx: Any, turns: asyncio.Semaphore, work: Callable[[], Awaitable[T]]) -> T:
    """The result of `work` when it is its turn, while its client waits for it."""
    errors = require("mcp.server.mcpserver.exceptions", extra="mcp")
    running = asyncio.ensure_future(_in_turn(turns, work))
    try:
        while not (await asyncio.wait([running], timeout=_ASK_AGAIN))[0]:
            request = ctx.request_context.request  # None on standard input
            if request is not None and await request.is_disconnected():
                raise errors.ToolError("the client has left")
        return running.result()
    except PreciseRagError as error:
        raise errors.ToolError(str(error)) from error
    finally:
        running.cancel()


async def _in_turn(turns: asyncio.Semaphore, work: Callable[[], Awaitable[T]]) -> T:
    async with turns:
        return await work()
