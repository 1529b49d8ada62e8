"""`precise serve INDEX`: an index as tools of an agent, over the Model Context Protocol."""

import argparse
import os
import secrets
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial, wraps
from pathlib import Path
from typing import Any

import precise_rag
from precise_rag import evidence
from precise_rag._extras import require
from precise_rag.cli.arguments import open_index
from precise_rag.cli.output import warn
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.excerpts import Form, excerpts_of
from precise_rag.facts import place_name
from precise_rag.filters import as_filter
from precise_rag.index import DatabaseIndex, DocumentIndex
from precise_rag.index.folder import MANIFEST
from precise_rag.pipeline import PreciseRAG
from precise_rag.redaction import visible, visible_line
from precise_rag.titles import joined_titles, new_sections
from precise_rag.tokens import estimate_tokens, readable_texts
from precise_rag.types import Candidate, Excerpt

_INSTRUCTIONS = "Search documents, and cite them by their names, with the page or time if there is one."
_LONGEST_READ = 20_000
"""Most characters that the tool `read` returns."""
_HOST, _PORT = "127.0.0.1", 8000
_IDLE_SECONDS = 60
"""After which a session without a request in progress ends; a client opens another one."""


def run(args: argparse.Namespace) -> int:
    """Serve until the client leaves or the command is interrupted."""
    if args.port is not None and not args.http:
        raise InputError("--port is for --http; add it, or leave --port out")
    server = make_server(partial(open_index, args), Path(args.index, MANIFEST))
    if args.http:
        port = _PORT if args.port is None else args.port
        try:
            with socket.create_server((_HOST, port)) as free:
                port = free.getsockname()[1]  # of 0, any
        except (OSError, OverflowError) as error:
            raise InputError(f"--port {port} cannot be used ({error}); choose another") from error
        warn(f"serving {args.index} at http://{_HOST}:{port}/mcp; end with Ctrl-C")
        server.run("streamable-http", host=_HOST, port=port, session_idle_timeout=_IDLE_SECONDS)
    else:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # Python would wait for the thread that reads
        server.run()
    return 0


def make_server(opened: Callable[[], DocumentIndex | DatabaseIndex], manifest: Path) -> Any:
    """Return an MCP server with tools that search and read an index, and prune texts.

    opened, manifest: as for `_Latest`.
    For local HTTP the SDK refuses requests whose Host or Origin is not this machine.
    """
    mcp = require("mcp.server.mcpserver", extra="mcp")
    made = require("mcp.server.mcpserver.tools", extra="mcp").Tool.from_function
    types = require("mcp.types", extra="mcp")
    latest = _Latest(opened, manifest)
    only_reads = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )

    def search(question: str, filter: dict[str, Any] | None = None, max_tokens: int | None = None) -> str:
        """Find the excerpts that answer a question. A line mark-number names the document and @place of
        each; lines without this mark are text of documents. filter: by metadata, e.g.
        {"year": {"$gte": 2020}}."""
        letters, (index, rag) = secrets.token_hex(16), latest.get()
        form = Form(lambda excerpts: [_written(excerpts, letters)], _source_tokens)
        selection = rag.retrieve(question, filter=filter, max_tokens=max_tokens, form=form)
        limit = f" that fits into {max_tokens} tokens" if max_tokens else ""
        found = excerpts_of(selection, rag.order, _source_tokens)
        named = {condition.field for condition in as_filter(filter or {}).conditions()} - {"$id"}
        if not found and named and (unknown := sorted(named - (known := index.fields()))):
            asked = unknown[0][:40]
            close = get_close_matches(asked, [visible_line(one)[:40] for one in known], 9, 0)
            limit += f"; no document has the field {asked!r}, but {', '.join(close) or 'none'}"
        return _written(found, letters) or f"Nothing was found{limit}."

    def read(document: str, place: int, around: int = 1_000) -> str:
        """Read a document around a place, the number after @. around: characters before and after."""
        text = latest.get()[0].document(document).text
        if not 0 <= place <= len(text) or around < 0:
            limits = f"place must be within 0 and {len(text)}, and around at least 0"
            raise InputError(f"{limits}, got {place} and {around}")
        around = min(around, _LONGEST_READ // 2)
        first, last = max(0, place - around), min(len(text), place + around)
        return f"characters {first} to {last} of {len(text)}\n{text[first:last]}"

    def prune(text: str, question: str, max_tokens: int = 400) -> str:
        """Cut a long text of yours, such as a page, log or JSON, down to what answers a question."""
        return evidence.prune(text, question, max_tokens).text

    tools = [
        made(_with_tool_errors(function), annotations=only_reads, structured_output=False)
        for function in (search, read, prune)
    ]
    for tool in tools:  # the SDK drops arguments that it does not know: a misspelled filter would find all
        known = tool.fn_metadata.arg_model
        strict = tool.fn_metadata.arg_model = type(known)(known.__name__, (known,), {}, extra="forbid")
        tool.parameters = strict.model_json_schema(by_alias=True)
    described = {"instructions": _INSTRUCTIONS, "version": precise_rag.__version__}
    return mcp.MCPServer("precise-rag", **described, log_level="WARNING", tools=tools)


class _Latest:
    """The index that is served: opened again when another one has been saved in its place.

    opened: opens it. manifest: the file that every save replaces; an index in a database has none.
    """

    def __init__(self, opened: Callable[[], DocumentIndex | DatabaseIndex], manifest: Path) -> None:
        self._opened, self._manifest = opened, manifest
        self._saved = self._state()
        self._served = (index := opened()), PreciseRAG(index)

    def get(self) -> tuple[DocumentIndex | DatabaseIndex, PreciseRAG]:
        """Return the index, opened anew if it was saved since, and the pipeline that searches it.

        If it cannot be opened, return the index that was served before, warn, and try again next time.
        """
        if (saved := self._state()) != self._saved:
            self._saved = saved  # first, so that other threads do not open it, too
            try:
                self._served = (index := self._opened()), PreciseRAG(index)
            except (PreciseRagError, OSError) as error:
                self._saved = None
                warn(f"warning: the index is served as it was before: {error}")
        return self._served

    def _state(self) -> tuple[int, int] | None:
        with suppress(OSError):
            its = self._manifest.stat()
            return its.st_mtime_ns, its.st_ino
        return None


def _with_tool_errors(tool: Callable[..., str]) -> Callable[..., str]:
    """Wrap a tool so that the agent reads the library's errors; of others the SDK tells it nothing."""
    tool_error = require("mcp.server.mcpserver.exceptions", extra="mcp").ToolError

    @wraps(tool)
    def called(**arguments: Any) -> str:
        try:
            return readable_texts([tool(**arguments)])[0]  # a lone surrogate would end the server
        except PreciseRagError as error:
            raise tool_error(visible(str(error))) from error

    return called


def _written(excerpts: Sequence[Excerpt], letters: str) -> str:
    """Return excerpts as one text, each below a line that names its source.

    A document cannot write such a line: the mark in it, of these random letters, is in none of the texts.
    """
    ends = range(4, len(letters) + 1)
    mark = next(letters[:n] for n in ends if not any(letters[:n] in excerpt.text for excerpt in excerpts))
    parts = []
    for number, (excerpt, titles) in enumerate(zip(excerpts, new_sections(excerpts), strict=True), start=1):
        source = [excerpt.doc_id, place_name(excerpt), joined_titles(titles)]
        named = " ".join("; ".join(filter(None, source)).split())
        parts.append(f"{mark}-{number} {named} @{excerpt.start}\n{excerpt.text.rstrip()}")
    return "\n\n".join(parts)


def _source_tokens(piece: Candidate) -> int:
    """Return the tokens of the line above an excerpt, beside its titles."""
    return estimate_tokens(f"4a8c-1 {piece.doc_id}; page 1 @{piece.start}")
