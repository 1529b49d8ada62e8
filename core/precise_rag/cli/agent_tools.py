"""The tools of an index for agents, over the Model Context Protocol."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import precise_rag
from precise_rag._extras import require
from precise_rag.documents import place_of
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.pipeline import PreciseRAG
from precise_rag.types import Candidate

T = TypeVar("T")

_AT_ONCE = 4
"""Requests that work at a time; the others wait."""
_ASK_AGAIN = 0.2
"""Seconds after which a running request is asked again whether its client is still there."""
_LONGEST_READ = 20_000
_MOST_DOCUMENTS = 1_000
_MOST_FIELDS = 100
_MOST_VALUES = 20
_LONGEST_VALUE = 200
_INSTRUCTIONS = (
    "Search a collection of documents. `search` returns the few sentences that answer a question, with their "
    "places; `read` returns the text around a place; `filter` lists the metadata by which a search can be "
    "limited. Cite the documents by their ids, with the page if there is one."
)


def make_server(rag: PreciseRAG) -> Any:
    """Return an MCP server with the tools of an index.

    rag: the pipeline that searches; its language model, if any, is not used.

    A request that is cancelled, or whose client has left, does not begin, or ends after the stage that runs.
    """
    mcp = require("mcp.server.mcpserver", extra="mcp")
    server = mcp.MCPServer(
        "precise-rag", instructions=_INSTRUCTIONS, version=precise_rag.__version__, log_level="WARNING"
    )
    turns = asyncio.Semaphore(_AT_ONCE)

    async def search(ctx: Any, question: str, filter: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Find the few sentences that answer a question, best first.

        question: in words, self-contained.
        filter: limits the search by metadata, such as {"year": {"$gte": 2020}} or {"source": "a.md"}; the
            tool `filter` lists the fields.
        Returns for each piece its text, score, document, page and headings, and the place to `read` around.
        """
        selection = await _answer(ctx, turns, partial(rag.aretrieve, question, filter=filter))
        return [_record(piece) for piece in selection.kept]

    async def read(ctx: Any, document: str, start: int, end: int, around: int = 1_000) -> dict[str, Any]:
        """Read the text around a place of a document.

        document, start, end: from a result of `search`.
        around: characters before and after, at most 10,000.
        """
        return await _answer(ctx, turns, partial(asyncio.to_thread, _read, rag, document, start, end, around))

    async def fields(ctx: Any) -> dict[str, dict[str, int]]:
        """List the fields of metadata by which `search` can be limited, each with its commonest values.

        The values are counted in a thousand documents at most.
        """
        return await _answer(ctx, turns, partial(asyncio.to_thread, _fields, rag))

    for tool, name in ((search, "search"), (read, "read"), (fields, "filter")):
        tool.__annotations__["ctx"] = mcp.Context
        server.add_tool(tool, name=name)
    return server


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


def _record(piece: Candidate) -> dict[str, Any]:
    place = place_of(piece)
    return {
        "text": piece.text.strip(),
        "score": round(piece.score, 4),
        "document": piece.doc_id,
        "page": place.page,
        "headings": list(place.headings),
        "start": piece.start,
        "end": piece.end,
    }


def _read(rag: PreciseRAG, document: str, start: int, end: int, around: int) -> dict[str, Any]:
    get = getattr(rag.index, "document", None)
    if get is None:
        raise InputError("this index does not keep the texts of its documents; use `search` alone")
    text = get(document).text
    if not 0 <= start <= end <= len(text):
        raise InputError(f"the place must be within 0 and {len(text)}, got {start} to {end}")
    around = max(0, min(around, _LONGEST_READ // 2))
    first, last = max(0, start - around), min(len(text), end + around, start + _LONGEST_READ)
    return {"document": document, "start": first, "end": last, "text": text[first:last]}


def _fields(rag: PreciseRAG) -> dict[str, dict[str, int]]:
    """The values of each field in a bounded number of documents; long values cannot be looked up by hand."""
    some_metadata = getattr(rag.index, "some_metadata", None)
    if some_metadata is None:
        raise InputError("this index does not list the metadata of its documents; use `search` alone")
    n_documents = Counter[str]()
    counts: dict[str, Counter[str]] = {}
    for metadata in some_metadata(_MOST_DOCUMENTS):
        for name, value in metadata.items():
            if isinstance(value, str | int | float | bool):
                shown = value if isinstance(value, str) else json.dumps(value)
                n_documents[name] += 1
                counts.setdefault(name, Counter()).update([shown] * (len(shown) <= _LONGEST_VALUE))
    commonest = [name for name, _ in n_documents.most_common(_MOST_FIELDS)]
    return {name: dict(counts[name].most_common(_MOST_VALUES)) for name in commonest}
