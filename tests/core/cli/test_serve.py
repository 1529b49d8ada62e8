"""`precise serve`, asked by the client of the protocol's own SDK."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from precise_rag import Document, PreciseRAG
from precise_rag.cli.serve import make_server
from precise_rag.testing import HashEncoder

mcp = pytest.importorskip("mcp")

TEXT = "The lamp is lit at dusk. Ilse Brandt keeps it.\n\nThe road to the pass is closed in winter."


def server() -> Any:
    documents = [
        Document("lamp.md", TEXT, {"year": 2020, "source": "lamp.md", "pages": [0, 50]}),
        Document("otter.md", "Otters sleep by the river. It floods in March.", {"year": 1999}),
    ]
    return make_server(
        PreciseRAG.from_documents(
            documents, encoder=HashEncoder(64), reranker=None, evidence=None, selector=None
        )
    )


async def test_an_agent_searches_reads_and_filters() -> None:
    async with mcp.Client(server()) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"search", "read", "filter"}
        assert all(tool.description for tool in tools.values())
        found = (await client.call_tool("search", {"question": "Who keeps the lamp?"})).structured_content[
            "result"
        ]
        best = next(piece for piece in found if "Ilse" in piece["text"])
        assert (best["document"], best["page"]) == ("lamp.md", 1)
        place = {name: best[name] for name in ("document", "start", "end")}
        around = (await client.call_tool("read", place)).structured_content
        assert around["text"] == TEXT
        fields = (await client.call_tool("filter", {})).structured_content
        assert fields["year"] == {"2020": 1, "1999": 1}
        asked = {"question": "Who keeps the lamp?", "filter": {"year": 1999}}
        only = (await client.call_tool("search", asked)).structured_content["result"]
        assert {piece["document"] for piece in only} <= {"otter.md"}


async def test_mistakes_of_an_agent_are_errors_that_say_what_to_do() -> None:
    async with mcp.Client(server()) as client:
        for tool, asked, message in (
            ("search", {"question": " "}, "the query must"),
            ("search", {"question": "Who?", "filter": {"year": {"$near": 1}}}, "$near"),
            ("read", {"document": "nothing", "start": 0, "end": 1}, "no document"),
            ("read", {"document": "lamp.md", "start": 5, "end": 10**9}, "the place must be within"),
        ):
            result = await client.call_tool(tool, asked)
            assert result.is_error
            assert message in result.content[0].text


@pytest.mark.slow
async def test_the_command_serves_standard_input_and_output(folder: Path) -> None:
    parameters = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "precise_rag", "serve", str(folder / "index")],
        env=dict(os.environ),
    )
    stdio = pytest.importorskip("mcp.client.stdio")
    async with mcp.Client(stdio.stdio_client(parameters)) as client:
        found = await client.call_tool("search", {"question": "Who keeps the lamp?"})
        assert "Ilse Brandt keeps it." in found.structured_content["result"][0]["text"]


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """The address of `precise serve --http`, which is then interrupted as with Ctrl-C."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "precise_rag", "serve", str(folder / "index"), "--http"]
    with subprocess.Popen(
        [*command, "--port", str(port)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    ) as server:
        assert server.stderr is not None
        assert f"http://127.0.0.1:{port}/mcp" in server.stderr.readline()
        while server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        assert server.stderr.read().splitlines()[-1] == "precise: interrupted"


@pytest.mark.slow
async def test_the_command_serves_http_on_this_machine_only(address: str) -> None:
    async with mcp.Client(address) as client:
        found = (await client.call_tool("search", {"question": "Who keeps the lamp?"})).structured_content
        best = found["result"][0]
        assert "Ilse Brandt keeps it." in best["text"]
        place = {name: best[name] for name in ("document", "start", "end")}
        around = (await client.call_tool("read", place)).structured_content
        assert around["text"].startswith("The lamp is lit at dusk.")
        assert (await client.call_tool("filter", {})).structured_content["source"]["lamp.txt"] == 1
    headers = {"Host": "example.com", "Content-Type": "application/json"}
    elsewhere = urllib.request.Request(address, data=b"{}", headers=headers)
    with pytest.raises(urllib.error.HTTPError, match="421"):
        urllib.request.urlopen(elsewhere)


def test_a_port_that_is_taken_is_one_line(folder: Path, precise: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, out, err = precise("serve", folder / "index", "--http", "--port", port)
    assert (code, out) == (1, "")
    assert f"127.0.0.1:{port}" in err
    assert err.count("\n") == 1
