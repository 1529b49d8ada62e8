"""`precise serve` over HTTP: who is served, and requests that nobody waits for."""

import argparse
import asyncio
import re
import signal
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from precise_rag import PreciseRAG
from precise_rag.cli.agent_tools import make_server
from precise_rag.cli.http_doors import TOKEN_VARIABLE, Doors, add_http_options
from precise_rag.cli.serve import http_server
from precise_rag.errors import InputError
from support.serving import pipeline, running, serve

mcp = pytest.importorskip("mcp")
httpx = pytest.importorskip("httpx")


class Gate:
    """An index whose searches wait until they are let through. begun, most: how many began, and at a time."""

    def __init__(self) -> None:
        self.index = pipeline().index
        self.open = threading.Event()
        self.begun = self.running = self.most = 0

    def search(self, *args: Any, **kwargs: Any) -> Any:
        self.begun += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.open.wait(30)
        self.running -= 1
        return self.index.search(*args, **kwargs)

    def serve(self) -> Any:
        return make_server(PreciseRAG(self, reranker=None, evidence=None, selector=None))


QUESTION = {"question": "Who keeps the lamp?"}


async def test_requests_that_are_cancelled_before_they_begin_never_run() -> None:
    gate = Gate()
    async with mcp.Client(gate.serve()) as client:
        tasks = [asyncio.create_task(client.call_tool("search", QUESTION)) for _ in range(30)]
        while gate.begun < 4:
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        gate.open.set()
        found = await client.call_tool("search", QUESTION)
    assert "Ilse" in found.content[0].text
    assert gate.begun <= 12


def served(rag: PreciseRAG, *options: str) -> AbstractAsyncContextManager[str]:
    """The URL of the tools over HTTP, with the doors that the options ask for."""
    return running(lambda port: http_server(rag, doors("--port", str(port), *options)))


def doors(*options: str) -> Doors:
    parser = argparse.ArgumentParser()
    add_http_options(parser)
    return Doors.of(parser.parse_args(list(options)))


def posted(method: str, number: int = 0, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
BEGIN = posted(
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "client", "version": "1"},
)


async def test_requests_whose_client_left_before_they_begin_never_run() -> None:
    gate = Gate()
    rag = PreciseRAG(gate, reranker=None, evidence=None, selector=None)
    async with served(rag) as url, httpx.AsyncClient(headers=HEADERS, timeout=30.0) as client:
        client.headers["mcp-session-id"] = (await client.post(f"{url}/mcp", json=BEGIN)).headers[
            "mcp-session-id"
        ]
        asked = [posted("tools/call", n, name="search", arguments=QUESTION) for n in range(1, 32)]
        await client.post(f"{url}/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        tasks = [asyncio.create_task(client.post(f"{url}/mcp", json=body)) for body in asked[:-1]]
        while gate.begun < 4:
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(1.0)  # longer than the server takes to see that they left
        gate.open.set()
        reply = await client.post(f"{url}/mcp", json=asked[-1])
    assert "Ilse" in reply.text
    assert gate.begun <= 12


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong-wrong-wrong-wrong"}, 401),
        ({"Authorization": "Basic a-token-of-sixteen-at-least"}, 401),
        ({"Authorization": "Bearer a-token-of-sixteen-at-least"}, 200),
        ({"Authorization": "bearer a-token-of-sixteen-at-least", "Host": "search.example.com:80"}, 200),
        ({"Authorization": "Bearer a-token-of-sixteen-at-least", "Host": "evil.example.com"}, 421),
        ({"Authorization": "Bearer a-token-of-sixteen-at-least", "Origin": "https://evil.com"}, 403),
        ({"Authorization": "Bearer a-token-of-sixteen-at-least", "Origin": "https://good.com"}, 200),
    ],
)
async def test_beyond_this_machine_only_known_hosts_and_pages_with_the_token_are_served(
    headers: dict[str, str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "a-token-of-sixteen-at-least")
    options = [
        "--host",
        "0.0.0.0",
        "--allow-host",
        "search.example.com",
        "--allow-origin",
        "https://good.com",
    ]
    async with served(pipeline(), *options) as url, httpx.AsyncClient() as client:
        reply = await client.post(f"{url}/mcp", json=BEGIN, headers={**HEADERS, **headers})
    assert reply.status_code == status


def test_this_machine_needs_no_token_and_others_get_a_new_one_that_is_printed_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    monkeypatch.setattr("precise_rag.cli.http_doors.is_terminal", lambda name: True)
    assert doors().token == doors("--host", "::1").token == doors("--host", "localhost").token == ""
    assert capsys.readouterr().err == ""
    for options in (["--host", "192.0.2.7"], ["--allow-host", "search.example.com"]):
        made = doors(*options)
        assert len(made.token) >= 40
        assert capsys.readouterr().err.count(made.token) == 1
    assert doors("--host", "192.0.2.7").token != doors("--host", "192.0.2.7").token


def test_a_token_is_read_from_a_file_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "environment-environment")
    (tmp_path / "token").write_text("file-file-file-file\n")
    assert doors("--host", "192.0.2.7").token == "environment-environment"
    assert doors("--token-file", str(tmp_path / "token")).token == "file-file-file-file"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "token", "message"),
    [
        (["--host", "192.0.2.7"], None, "beyond this machine clients need a token"),
        (["--host", "0.0.0.0"], None, "--allow-host NAME"),
        (["--host", "::"], None, "--allow-host NAME"),
        (["--allow-host", "*"], None, "--allow-host must be a name"),
        (["--allow-host", "http://a.example"], None, "--allow-host must be a name"),
        (["--allow-origin", "*"], None, "--allow-origin must be like"),
        (["--allow-origin", "https://*"], None, "--allow-origin must be like"),
        ([], "", "16 to 512 printable"),
        ([], "short", "16 to 512 printable"),
        ([], "with space in the middle", "16 to 512 printable"),
        (["--token-file", "/does/not/exist"], None, "cannot read the token"),
    ],
)
def test_doors_that_cannot_be_are_one_error_without_the_token(
    options: list[str], token: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    if token is not None:
        monkeypatch.setenv(TOKEN_VARIABLE, token)
    with pytest.raises(InputError, match=re.escape(message)) as raised:
        doors(*options)
    assert not token or token not in str(raised.value)


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """The address of `precise serve --http`, which is then interrupted as with Ctrl-C."""
    job = {
        "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    }  # in the background it ignores it
    with serve(str(folder / "index"), "--http", **job) as (server, url):
        yield f"{url}/mcp"
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        assert server.stderr is not None
        assert server.stderr.read().splitlines()[-1] == "precise: interrupted"


@pytest.mark.slow
async def test_the_command_serves_http_on_this_machine_only(address: str) -> None:
    async with mcp.Client(address) as client:
        asked = {"question": "Who keeps the lamp?", "structured": True}
        best = (await client.call_tool("search", asked)).structured_content["excerpts"][0]
        assert "Ilse Brandt keeps it." in best["text"]
        place = {"document": best["document"], "place": best["start"]}
        around = (await client.call_tool("read", place)).content[0].text
        assert around.splitlines()[1].startswith("The lamp is lit at dusk.")
        assert '"lamp.txt" (1)' in (await client.call_tool("collections", {})).content[0].text
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
