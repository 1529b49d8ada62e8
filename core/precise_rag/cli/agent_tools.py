"""The tools of an index for agents, over the Model Context Protocol."""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar

import precise_rag
from precise_rag._extras import require
from precise_rag.documents import place_of
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.evidence import prune
from precise_rag.excerpts import excerpts_of
from precise_rag.pipeline import PreciseRAG
from precise_rag.titles import joined_titles, new_sections, titles_above
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Excerpt

T = TypeVar("T")

_AT_ONCE = 4
"""Requests that work at a time; the others wait."""
_ASK_AGAIN = 0.2
"""Seconds after which a running request is asked again whether its client is still there."""
_LONGEST_READ = 20_000
_LONGEST_TEXT = 1_000_000
_MOST_DOCUMENTS = 1_000
_MOST_FIELDS = 100
_MOST_VALUES = 20
_LONGEST_VALUE = 200
_INSTRUCTIONS = (
    "Search a collection of documents. `search` returns the excerpts that answer a question, each below its "
    "number, mark, document and place; `read` returns the text around a place; `filter` lists the metadata "
    "by which a search can be limited; `prune` shortens a long text of yours. Cite the documents by their "
    "ids, with the page if there is one."
)


def make_server(rag: PreciseRAG) -> Any:
    """Return an MCP server with the tools of an index.

    rag: the pipeline that searches; its language model, if any, is not used.

    A request that is cancelled, or whose client has left, does not begin, or ends after the stage that runs.
    """
    mcp = require("mcp.server.mcpserver", extra="mcp")
    errors = require("mcp.server.mcpserver.exceptions", extra="mcp")
    server = mcp.MCPServer(
        "precise-rag", instructions=_INSTRUCTIONS, version=precise_rag.__version__, log_level="WARNING"
    )
    turns = asyncio.Semaphore(_AT_ONCE)

    types = require("mcp.types", extra="mcp")

    def reply(text: str, structured: Any = None) -> Any:
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=structured
        )

    async def search(
        ctx: Any,
        question: str,
        filter: dict[str, Any] | None = None,
        max_tokens: int | None = None,
        structured: bool = False,
    ) -> Any:
        """Find the excerpts of the documents that answer a question.

        question: in words, self-contained.
        filter: limits the search by metadata, such as {"year": {"$gte": 2020}} or {"source": "a.md"}; the
            tool `filter` lists the fields.
        max_tokens: most tokens of the reply; default: as many as the answer needs.
        structured: also return the excerpts as JSON with their scores.
        Returns the excerpts, each below a line with its number, a mark, document, page, headings and @place.
        The mark in the first line is new in every reply; a line without it is text of a document. Excerpts of
        the same document follow each other, and its name is not repeated.
        """
        asked = partial(
            rag.aretrieve, question, filter=filter, max_tokens=max_tokens, piece_tokens=_source_tokens
        )
        selection = await _answer(ctx, turns, asked)
        excerpts = excerpts_of(selection, rag.order, _source_tokens)
        records = {"excerpts": [_record(one) for one in excerpts]} if structured else None
        nothing = f"Nothing was found{'' if max_tokens is None else f' that fits into {max_tokens} tokens'}."
        return reply(_written(excerpts) or nothing, records)

    async def read(ctx: Any, document: str, place: int, around: int = 1_000) -> Any:
        """Read the text around a place of a document.

        document, place: from a result of `search`; the place is the number after the @.
        around: characters before and after, at most 10,000.
        """
        return reply(
            await _answer(ctx, turns, partial(asyncio.to_thread, _read, rag, document, place, around))
        )

    async def fields(ctx: Any) -> dict[str, dict[str, int]]:
        """List the fields of metadata by which `search` can be limited, each with its commonest values.

        The values are counted in a thousand documents at most.
        """
        return await _answer(ctx, turns, partial(asyncio.to_thread, _fields, rag))

    async def shorten(ctx: Any, text: str, question: str, max_tokens: int = 400) -> str:
        """Cut a long text, such as a page, a log or JSON, down to what answers a question.

        [… 120-3400] in the result stands for the characters 120 to 3400, which are left out.
        """
        if len(text) > _LONGEST_TEXT:
            raise errors.ToolError(
                f"the text has {len(text):,} characters; at most {_LONGEST_TEXT:,} are read"
            )
        work = partial(asyncio.to_thread, prune, text, question, max_tokens)
        return (await _answer(ctx, turns, work)).text

    search.__annotations__["return"] = read.__annotations__["return"] = types.CallToolResult
    only_reads = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    for tool, name in ((search, "search"), (read, "read"), (fields, "filter")):
        tool.__annotations__["ctx"] = mcp.Context
        server.add_tool(tool, name=name, annotations=only_reads)
    shorten.__annotations__["ctx"] = mcp.Context
    server.add_tool(shorten, name="prune", annotations=only_reads, structured_output=False)
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


def _written(excerpts: Sequence[Excerpt]) -> str:
    """The excerpts as one text, each below its source; what is as before is not repeated.

    A text cannot write such a line: the mark in it is in none of the texts.
    """
    parts = []
    former = None
    mark = _new_mark([excerpt.text for excerpt in excerpts])
    for number, (excerpt, titles) in enumerate(zip(excerpts, new_sections(excerpts), strict=True), start=1):
        page = place_of(excerpt).page
        named = [excerpt.doc_id] * (excerpt.doc_id != former)
        named += [f"page {page}"] * (page is not None)
        named += [joined_titles(titles)] * bool(titles)
        former = excerpt.doc_id
        source = " ".join(["; ".join(" ".join(name.split()) for name in named), f"@{excerpt.start}"])
        parts.append(f"[{number} {mark}] {source.strip()}\n{excerpt.text.rstrip()}")
    return "\n\n".join(parts)


def _new_mark(texts: Sequence[str]) -> str:
    """Random hexadecimal digits that are in none of the texts: four, or more if need be."""
    for n_bytes in count(2):
        mark = secrets.token_hex(n_bytes)
        if not any(mark in text for text in texts):
            break
    return mark


def _source_tokens(piece: Candidate) -> int:
    """Tokens of the line above an excerpt, beside its titles."""
    return estimate_tokens(f"[1 7f3a] {piece.doc_id}; page 1 @{piece.start}")


def _record(excerpt: Excerpt) -> dict[str, Any]:
    return {
        "text": excerpt.text,
        "score": round(excerpt.score, 4),
        "document": excerpt.doc_id,
        "page": place_of(excerpt).page,
        "titles": list(titles_above(excerpt)),
        "start": excerpt.start,
        "end": excerpt.end,
    }


def _read(rag: PreciseRAG, document: str, place: int, around: int) -> str:
    get = getattr(rag.index, "document", None)
    if get is None:
        raise InputError("this index does not keep the texts of its documents; use `search` alone")
    text = get(document).text
    if not 0 <= place <= len(text):
        raise InputError(f"the place must be within 0 and {len(text)}, got {place}")
    around = max(0, min(around, _LONGEST_READ // 2))
    first, last = max(0, place - around), min(len(text), place + around)
    return f"characters {first} to {last} of {len(text)}\n{text[first:last]}"


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
