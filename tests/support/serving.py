"""Servers on free ports of this machine: in the process of a test, or as `precise serve`."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from precise_rag import Document, PreciseRAG
from precise_rag.testing import HashEncoder

LAMP = "The lamp is lit at dusk. Ilse Brandt keeps it.\n\nThe road to the pass is closed in winter."


def pipeline() -> PreciseRAG:
    """A pipeline over two documents."""
    documents = [
        Document("lamp.md", LAMP, {"year": 2020, "source": "lamp.md", "pages": [0, 50]}),
        Document("otter.md", "Otters sleep by the river. It floods in March.", {"year": 1999}),
    ]
    options = {"reranker": None, "evidence": None, "selector": None}
    return PreciseRAG.from_documents(documents, encoder=HashEncoder(64), **options)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@asynccontextmanager
async def running(make: Callable[[int], Any]) -> AsyncIterator[str]:
    """The URL of the server that is made for a port."""
    port = free_port()
    server = make(port)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


@contextmanager
def serve(*args: str, **options: Any) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """`precise serve` with arguments, and its URL."""
    port = free_port()
    command = [sys.executable, "-m", "precise_rag", "serve", *args, "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options) as server:
        assert server.stderr is not None
        assert f"http://127.0.0.1:{port}" in server.stderr.readline()
        while server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        try:
            yield server, f"http://127.0.0.1:{port}"
        finally:
            server.kill()
