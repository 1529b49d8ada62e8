"""`precise serve INDEX`: an index as tools of an agent, over the Model Context Protocol."""

import argparse
import asyncio
from typing import Any

from precise_rag._extras import require
from precise_rag.cli.agent_tools import make_server
from precise_rag.cli.http_doors import Doors, add_http_options
from precise_rag.cli.output import Subparsers, warn
from precise_rag.cli.saved_index import add_index_options, open_index
from precise_rag.pipeline import PreciseRAG


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
    add_http_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until the client leaves or the command is interrupted."""
    require("mcp", extra="mcp")
    if not args.http:
        make_server(PreciseRAG(open_index(args))).run()
        return 0
    doors = Doors.of(args)
    doors.check_address()
    rag = PreciseRAG(open_index(args))
    warn(f"serving {args.index} at http://{args.host}:{args.port}/mcp; end with Ctrl-C")
    asyncio.run(http_server(rag, doors).serve())
    return 0


def http_server(rag: PreciseRAG, doors: Doors) -> Any:
    """Return a uvicorn server of the tools of an index; `serve` runs it."""
    uvicorn = require("uvicorn", extra="mcp")
    security = require("mcp.server.transport_security", extra="mcp").TransportSecuritySettings(
        allowed_hosts=list(doors.hosts), allowed_origins=list(doors.origins)
    )
    app = make_server(rag).streamable_http_app(transport_security=security)
    return uvicorn.Server(
        uvicorn.Config(doors.guarded(app), host=doors.host, port=doors.port, log_level="warning")
    )
