"""`precise serve`: indexes as tools of an agent over the Model Context Protocol, or an HTTP service."""

import argparse
import asyncio
import os
from collections.abc import Mapping
from typing import Any

from precise_rag._extras import require
from precise_rag.cli.agent_tools import make_server
from precise_rag.cli.http_doors import App, Doors, add_http_options
from precise_rag.cli.output import Subparsers, warn
from precise_rag.cli.saved_index import add_index_options, open_indexes
from precise_rag.errors import InputError
from precise_rag.pipeline import PreciseRAG

_STOP_SECONDS = 30
"""Seconds that requests have to end after the server is told to stop."""
_MOST_CONNECTIONS = 1_000


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "serve",
        help="let agents search indexes (Model Context Protocol), or rerank and prune over HTTP",
        description="Serve the tools search, read, collections and prune over the Model Context Protocol "
        "(extra mcp), or with --rest an HTTP service that reranks and prunes (extra rest).",
    )
    add_index_options(parser, several=True)
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--http",
        action="store_true",
        help="serve streamable HTTP at http://HOST:PORT/mcp (default: standard input and output)",
    )
    ways.add_argument(
        "--rest",
        action="store_true",
        help="serve POST /rerank and /prune, GET /health, /metrics and /docs, without an index",
    )
    add_http_options(parser)
    add_rest_options(parser)
    parser.set_defaults(run=run)


def add_rest_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the HTTP service."""
    rest = parser.add_argument_group("options of --rest")
    rest.add_argument(
        "--reranker",
        default="default",
        metavar="NAME",
        help="default, packaged, or a model (default: default)",
    )
    rest.add_argument(
        "--max-bytes",
        type=int,
        default=8 * 2**20,
        metavar="N",
        help="largest body of a request (default: %(default)s)",
    )
    rest.add_argument(
        "--max-documents",
        type=int,
        default=1_000,
        metavar="N",
        help="most documents of a request (default: %(default)s)",
    )
    rest.add_argument(
        "--max-seconds",
        type=float,
        default=30.0,
        metavar="S",
        help="most seconds of a request, with its wait (default: %(default)s)",
    )
    rest.add_argument(
        "--at-once",
        type=int,
        default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        metavar="N",
        help="requests that work at a time (default: processors)",
    )
    rest.add_argument(
        "--max-waiting",
        type=int,
        default=64,
        metavar="N",
        help="requests that wait for them; a further one gets status 503 (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the client leaves or the command is interrupted."""
    if args.rest:
        return _run_rest(args)
    if not args.index:
        raise InputError("name the INDEX to serve; without one, --rest serves reranking and pruning")
    require("mcp", extra="mcp")
    if not args.http:
        make_server(_pipelines(args)).run()
        return 0
    doors = Doors.of(args)
    doors.check_address()
    pipelines = _pipelines(args)
    warn(f"serving {', '.join(pipelines)} at http://{args.host}:{args.port}/mcp; end with Ctrl-C")
    asyncio.run(http_server(pipelines, doors).serve())
    return 0


def http_server(pipelines: PreciseRAG | Mapping[str, PreciseRAG], doors: Doors) -> Any:
    """Return a uvicorn server of the tools of indexes; `serve` runs it."""
    security = require("mcp.server.transport_security", extra="mcp").TransportSecuritySettings(
        allowed_hosts=list(doors.hosts), allowed_origins=list(doors.origins)
    )
    app = make_server(pipelines).streamable_http_app(transport_security=security)
    return _server(doors.guarded(app), doors, extra="mcp")


def rest_server(args: argparse.Namespace, doors: Doors) -> Any:
    """Return a uvicorn server of the HTTP service; `serve` runs it. Its models are loaded."""
    for module in ("starlette", "pydantic", "prometheus_client"):
        require(module, extra="rest")
    from precise_rag.cli.rest import Limits, make_app

    limits = Limits(
        max_bytes=args.max_bytes,
        max_documents=args.max_documents,
        seconds=args.max_seconds,
        at_once=args.at_once,
        max_waiting=args.max_waiting,
    )
    app = make_app(args.reranker, limits, has_token=bool(doors.token))
    return _server(doors.checked(doors.guarded(app, open_paths=("/health",))), doors, extra="rest")


def _run_rest(args: argparse.Namespace) -> int:
    if args.index:
        raise InputError("--rest serves no index; leave INDEX out, or serve its tools with --http")
    doors = Doors.of(args)
    doors.check_address()
    server = rest_server(args, doors)
    warn(f"serving http://{args.host}:{args.port}, described at /docs; end with Ctrl-C")
    asyncio.run(server.serve())
    return 0


def _pipelines(args: argparse.Namespace) -> dict[str, PreciseRAG]:
    return {name: PreciseRAG(index) for name, index in open_indexes(args).items()}


def _server(app: App, doors: Doors, *, extra: str) -> Any:
    uvicorn = require("uvicorn", extra=extra)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=doors.host,
            port=doors.port,
            log_level="warning",
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
    )
