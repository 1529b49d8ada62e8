"""`precise serve INDEX`: an index as tools of an agent, over the Model Context Protocol."""

import argparse
import asyncio
import json
import socket
from collections import Counter
from typing import Any

import precise_rag
from precise_rag._extras import require
from precise_rag.cli.output import Subparsers, warn
from precise_rag.cli.saved_index import add_index_options, open_index
from precise_rag.documents import place_of
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.pipeline import PreciseRAG
from precise_rag.types import Candidate

_LONGEST_READ = 20_000
_MOST_VALUES = 20
_INSTRUCTIONS = (
    "Search a collection of documents. `search` returns the few sentences that answer a question, with their "
    "places; `read` returns the text around a place; `filter` lists the metadata by which a search can be "
    "limited. Cite the documents by their ids, with the page if there is one."
)


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "serve",
        help="let agents and assistants search an index (Model Context Protocol)",
        description="Serve the tools search, read and filter over the Model Context Protocol. "
        "Needs the extra mcp.",
    )
    add_index_options(parser)
    parser.add_argument(
        "--http",
        action="store_true",
        help="serve streamable HTTP at http://HOST:PORT/mcp (default: standard input and output)",
    )
    parser.add_argument(
        "--host",
        metavar="HOST",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s, this machine only; there is no login)",
    )
    parser.add_argument(
        "--port", type=int, metavar="PORT", default=8000, help="port to listen on (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until the client leaves or the command is interrupted."""
    require("mcp", extra="mcp")
    if args.http:
        _check_address(args.host, args.port)
    server = make_server(PreciseRAG(open_index(args)))
    if args.http:
        warn(f"serving {args.index} at http://{args.host}:{args.port}/mcp; end with Ctrl-C")
        server.run("streamable-http", host=args.host, port=args.port)
    else:
        server.run()
    return 0


def _check_address(host: str, port: int) -> None:
    """Raises InputError if the server could not listen there, before the index is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            pass
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen at {host}:{port}: {reason}; give another --port") from error


def make_server(rag: PreciseRAG) -> Any:
    """Return an MCP server with the tools of an index.

    rag: the pipeline that searches; its language model, if any, is not used.
    """
    mcp = require("mcp.server.mcpserver", extra="mcp")
    exceptions = require("mcp.server.mcpserver.exceptions", extra="mcp")
    server = mcp.MCPServer(
        "precise-rag", instructions=_INSTRUCTIONS, version=precise_rag.__version__, log_level="WARNING"
    )

    async def answer(function: Any, *args: Any) -> Any:
        try:
            return await asyncio.to_thread(function, *args)
        except PreciseRagError as error:
            raise exceptions.ToolError(str(error)) from error

    async def search(question: str, filter: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Find the few sentences that answer a question, best first.

        question: in words, self-contained.
        filter: limits the search by metadata, such as {"year": {"$gte": 2020}} or {"source": "a.md"}; the
            tool `filter` lists the fields.
        Returns for each piece its text, score, document, page and headings, and the place to `read` around.
        """
        found: list[dict[str, Any]] = await answer(_search, rag, question, filter)
        return found

    async def read(document: str, start: int, end: int, around: int = 1_000) -> dict[str, Any]:
        """Read the text around a place of a document.

        document, start, end: from a result of `search`.
        around: characters before and after, at most 10,000.
        """
        found: dict[str, Any] = await answer(_read, rag, document, start, end, around)
        return found

    async def fields() -> dict[str, dict[str, int]]:
        """List the fields of metadata by which `search` can be limited, each with its commonest values."""
        found: dict[str, dict[str, int]] = await answer(_fields, rag)
        return found

    server.add_tool(search)
    server.add_tool(read)
    server.add_tool(fields, name="filter")
    return server


def _search(rag: PreciseRAG, question: str, filter: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [_record(piece) for piece in rag.retrieve(question, filter=filter).kept]


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
    text = _documents(rag)(document).text
    if not 0 <= start <= end <= len(text):
        raise InputError(f"the place must be within 0 and {len(text)}, got {start} to {end}")
    around = max(0, min(around, _LONGEST_READ // 2))
    first, last = max(0, start - around), min(len(text), end + around, start + _LONGEST_READ)
    return {"document": document, "start": first, "end": last, "text": text[first:last]}


def _fields(rag: PreciseRAG) -> dict[str, dict[str, int]]:
    get = _documents(rag)
    counts: dict[str, Counter[str]] = {}
    for identifier in getattr(rag.index, "document_ids", ()):
        for name, value in get(identifier).metadata.items():
            if isinstance(value, str | int | float | bool):
                counts.setdefault(name, Counter())[
                    value if isinstance(value, str) else json.dumps(value)
                ] += 1
    return {name: dict(values.most_common(_MOST_VALUES)) for name, values in counts.items()}


def _documents(rag: PreciseRAG) -> Any:
    get = getattr(rag.index, "document", None)
    if get is None:
        raise InputError("this index does not keep the texts of its documents; use `search` alone")
    return get
