"""`precise serve --rest`, asked by the clients that rerank services have."""

import argparse
import asyncio
import json
import os
import re
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from precise_rag import Candidate, prune
from precise_rag.cli.http_doors import TOKEN_VARIABLE, Doors
from precise_rag.cli.serve import add_parser, rest_server
from precise_rag.errors import InputError
from precise_rag.rerank import CohereReranker, rerank
from support.serving import running, serve
from support.tool_results import KINDS, LOG

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")
from precise_rag.cli.rest import Limits, make_app  # noqa: E402
from precise_rag.cli.rest_messages import openapi  # noqa: E402

TEXTS = ["Otters sleep by the river.", "Ilse Brandt keeps the lamp.", "The road is closed in winter."]
QUESTION = "Who keeps the lamp?"
ASKED = {"model": "rerank-v3.5", "query": QUESTION, "documents": TEXTS}


def client(limits: Limits | None = None, reranker: Any = "packaged") -> Any:
    app = make_app(reranker, limits)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=60.0)


async def test_documents_are_ordered_as_clients_of_rerank_services_expect() -> None:
    async with client() as http:
        for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
            reply = (await http.post(path, json=ASKED)).json()
            scores = [one["relevance_score"] for one in reply["results"]]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)
            assert sorted(one["index"] for one in reply["results"]) == [0, 1, 2]
            assert reply["results"][0] == {"index": 1, "relevance_score": scores[0]}
            assert reply["id"]
            assert reply["usage"]["total_tokens"] > 20
        asked = {**ASKED, "top_n": 1, "return_documents": True}
        best = (await http.post("/rerank", json=asked)).json()["results"]
        assert [one["document"] for one in best] == [{"text": TEXTS[1]}]
        given = [{"text": TEXTS[0], "id": 7}, {"keeper": "Ilse Brandt", "keeps": "the lamp"}, "It is cold."]
        found = (await http.post("/rerank", json={**ASKED, "documents": given})).json()["results"]
        assert found[0]["index"] == 1


async def test_the_order_of_a_request_does_not_count() -> None:
    async with client() as http:
        first = (await http.post("/rerank", json=ASKED)).json()["results"]
        again = (await http.post("/rerank", json={**ASKED, "documents": TEXTS[::-1]})).json()["results"]
    assert [TEXTS[one["index"]] for one in first] == [TEXTS[::-1][one["index"]] for one in again]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_text_is_pruned_as_in_python(kind: str) -> None:
    text, question, answer = KINDS[kind]
    async with client() as http:
        reply = (
            await http.post("/prune", json={"text": text, "question": question, "max_tokens": 200})
        ).json()
    expected = prune(text, question, 200, reranker="packaged")
    assert reply["text"] == expected.text
    assert answer in reply["text"]
    assert (reply["n_tokens"], reply["n_tokens_before"]) == (expected.n_tokens, expected.n_tokens_before)
    assert [(e["start"], e["end"]) for e in reply["excerpts"]] == [
        (e.start, e.end) for e in expected.excerpts
    ]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/rerank", {"documents": TEXTS}, 422, "query: Field required"),
        ("/rerank", {**ASKED, "query": " "}, 422, "the query must not be blank"),
        ("/rerank", {**ASKED, "documents": []}, 422, "documents: List should have at least 1"),
        ("/rerank", {**ASKED, "documents": [3]}, 422, "documents.0"),
        ("/rerank", {**ASKED, "top_n": 0}, 422, "top_n: Input should be greater"),
        ("/rerank", {**ASKED, "documents": ["x"] * 6}, 413, "at most 5 documents, got 6"),
        ("/rerank", {**ASKED, "documents": ["x" * 9_000]}, 413, "more than 8,000 bytes"),
        ("/rerank", ASKED | {"documents": "x"}, 422, "documents"),
        ("/prune", {"text": "x", "question": "Who?", "max_tokens": 31}, 422, "max_tokens"),
        (
            "/prune",
            {"text": LOG[:2_000], "question": " ", "max_tokens": 40},
            422,
            "the query must not be blank",
        ),
        ("/prune", {"text": "x", "question": "Who?", "tokens": 40}, 422, "tokens: Extra inputs"),
        ("/prune", {f"f{i}": 1 for i in range(101)}, 422, "at most 100 fields, got 101"),
        ("/prune", {"text": "x", "question": "Who?", "x" * 5_000: 1}, 422, "x" * 1_000),
        ("/prune", [], 422, "must be a JSON object"),
        ("/nothing", {}, 404, "there is no POST /nothing; see /docs"),
        ("/health", {}, 405, "there is no POST /health"),
    ],
)
async def test_mistakes_are_one_message(path: str, body: Any, status: int, message: str) -> None:
    async with client(Limits(max_bytes=8_000, max_documents=5)) as http:
        reply = await http.post(path, json=body)
    assert reply.status_code == status
    assert message in reply.json()["message"]


async def test_bodies_that_are_no_json_are_refused() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 1_000

    async with client(Limits(max_bytes=8_000)) as http:
        json_type = {"Content-Type": "application/json"}
        deep = b"[" * 7_000
        for content, headers, status in (
            (b"{", json_type, 400),
            (deep, json_type, 400),
            (b"{}", {"Content-Type": "text/plain"}, 415),
            (b"{}", {}, 415),
            (endless(), json_type, 413),
        ):
            reply = await http.post("/rerank", content=content, headers=headers)
            assert reply.status_code == status
            assert reply.json()["message"]


async def test_of_many_mistakes_one_is_told() -> None:
    async with client() as http:
        message = (await http.post("/rerank", json={**ASKED, "documents": [3] * 900})).json()["message"]
    assert "documents.0" in message
    assert "documents.1" not in message


async def test_a_client_that_leaves_while_it_sends_is_no_error_of_ours() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    sent: list[Any] = []
    headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
    scope = {"type": "http", "method": "POST", "path": "/prune", "headers": headers, "query_string": b""}
    await make_app("packaged")(scope, receive, send)
    assert sent[0]["status"] == 499


class Gate:
    """A reranker that waits until it is let through. begun: how many began; most: at a time."""

    name, score_scale = "gate", "probability"

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.lock = threading.Lock()
        self.begun = self.running = self.most = 0

    def score(self, query: str, candidates: Any) -> list[float]:
        with self.lock:
            self.begun += 1
            self.running += 1
            self.most = max(self.most, self.running)
        self.open.wait(30)
        with self.lock:
            self.running -= 1
        return [0.5] * len(candidates)


async def until(met: Any) -> None:
    for _ in range(1_000):
        if met():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def test_more_requests_than_may_wait_are_told_to_come_later() -> None:
    gate = Gate()
    async with client(Limits(at_once=2, max_waiting=3), gate) as http:
        gate.open.clear()
        gate.begun = gate.most = 0
        waiting = [asyncio.create_task(http.post("/rerank", json=ASKED)) for _ in range(5)]
        await until(lambda: gate.running == 2)
        await asyncio.sleep(0.1)
        refused = await http.post("/rerank", json=ASKED)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert (await http.get("/health")).status_code == 200
        assert "precise_requests_admitted 5.0" in (await http.get("/metrics")).text
        gate.open.set()
        assert [reply.status_code for reply in await asyncio.gather(*waiting)] == [200] * 5
        assert gate.most == 2
        assert (await http.post("/rerank", json=ASKED)).status_code == 200


async def test_a_request_that_takes_too_long_ends_and_one_that_waits_never_begins() -> None:
    gate = Gate()
    async with client(Limits(at_once=1, max_waiting=1, seconds=0.5), gate) as http:
        gate.open.clear()
        gate.begun = 0
        replies = await asyncio.gather(*(http.post("/rerank", json=ASKED) for _ in range(2)))
        assert [reply.status_code for reply in replies] == [503, 503]
        assert "took longer than 0.5 seconds" in replies[0].json()["message"]
        assert gate.begun == 1
        assert "precise_requests_admitted 1.0" in (await http.get("/metrics")).text  # its thread still works
        gate.open.set()
        await until(lambda: gate.running == 0)
        assert (await http.post("/rerank", json=ASKED)).status_code == 200


async def test_metrics_and_the_description() -> None:
    async with client() as http:
        await http.post("/rerank", json=ASKED)
        await http.post("/rerank", json={})
        await http.post("/prune", json={"text": LOG, "question": QUESTION})
        metrics = (await http.get("/metrics")).text
        assert 'precise_requests_total{path="/rerank",status="200"} 1.0' in metrics
        assert 'precise_requests_total{path="/rerank",status="422"} 1.0' in metrics
        assert "precise_documents_total 3.0" in metrics
        read, returned = (
            float(re.findall(rf'precise_pruned_tokens_total{{which="{which}"}} (\S+)', metrics)[0])
            for which in ("read", "returned")
        )
        assert 0 < returned < read / 10
        described = (await http.get("/openapi.json")).json()
        page = (await http.get("/docs")).text
    assert set(described["paths"]) == {"/rerank", "/prune", "/health", "/metrics"}
    for operation in ("/rerank", "/prune"):
        assert operation in page
        body = described["paths"][operation]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body["$ref"].rsplit("/", 1)[1] in described["components"]["schemas"]


def test_the_description_is_openapi() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    for has_token in (False, True):
        validator.validate(openapi(has_token=has_token))


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["serve", "--rest", "--reranker", "packaged", *given])


def served(*given: str) -> AbstractAsyncContextManager[str]:
    """The URL of the service, with the doors that the options ask for."""

    def make(port: int) -> Any:
        args = options("--port", str(port), *given)
        return rest_server(args, Doors.of(args))

    return running(make)


async def test_cohere_s_own_client_reranks_here() -> None:
    cohere = pytest.importorskip("cohere")
    async with served() as url:
        async with cohere.AsyncClientV2(api_key="none", base_url=url) as theirs:
            reply = await theirs.rerank(model="rerank-v3.5", query=QUESTION, documents=TEXTS, top_n=2)
        assert reply.results[0].index == 1
        assert len(reply.results) == 2

        def ours() -> list[Candidate]:
            with CohereReranker("any", api_key="none", base_url=url) as reranker:
                found = [Candidate(str(i), 0, 5, text, 0.0, "rank") for i, text in enumerate(TEXTS)]
                return rerank(QUESTION, found, reranker)

        assert (await asyncio.to_thread(ours))[0].text == TEXTS[1]


TOKEN = "a-token-of-sixteen-at-least"


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({}, "/rerank", 401),
        ({}, "/docs", 401),
        ({}, "/health", 200),
        ({"Authorization": "Bearer wrong-wrong-wrong-wrong"}, "/rerank", 401),
        ({"Authorization": f"Bearer {TOKEN}"}, "/rerank", 200),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "rerank.example.com"}, "/rerank", 200),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example.com"}, "/rerank", 421),
        ({"Host": "evil.example.com"}, "/health", 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example.com"}, "/rerank", 403),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://rerank.example.com"}, "/rerank", 200),
    ],
)
async def test_beyond_this_machine_only_known_hosts_with_the_token_are_served(
    headers: dict[str, str], path: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    async with (
        served("--host", "0.0.0.0", "--allow-host", "rerank.example.com") as url,
        httpx.AsyncClient() as http,
    ):
        method, body = ("POST", ASKED) if path == "/rerank" else ("GET", None)
        reply = await http.request(method, url + path, json=body, headers=headers)
    assert reply.status_code == status


def test_without_a_token_nothing_is_served_beyond_this_machine(
    precise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    code, out, err = precise("serve", "--rest", "--host", "192.0.2.7")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "beyond this machine clients need a token" in err
    code, _, err = precise("serve", "my-index", "--rest")
    assert code == 1
    assert "--rest serves no index" in err


@pytest.mark.parametrize(
    "limits",
    [{"max_bytes": 0}, {"max_documents": 0}, {"seconds": 0}, {"at_once": 0}, {"max_waiting": -1}],
)
def test_other_limits_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(limits)).replace("_", "-")):
        Limits(**limits)


@pytest.fixture
def process() -> Iterator[tuple[Any, str]]:
    """`precise serve --rest`, and its URL."""
    with serve("--rest", "--reranker", "packaged", env={**os.environ, TOKEN_VARIABLE: TOKEN}) as started:
        yield started


@pytest.mark.slow
def test_a_server_that_is_told_to_stop_ends_what_it_does(process: Any) -> None:
    server, url = process
    headers = {"Authorization": f"Bearer {TOKEN}"}
    text = json.dumps({"text": LOG * 20, "question": QUESTION})
    replies = []

    def ask() -> None:
        replies.append(
            httpx.post(
                f"{url}/prune",
                content=text,
                headers={**headers, "Content-Type": "application/json"},
                timeout=60,
            ).status_code
        )

    asking = threading.Thread(target=ask)
    asking.start()
    while (
        "precise_requests_admitted 1.0" not in httpx.get(f"{url}/metrics", headers=headers, timeout=60).text
    ):
        time.sleep(0.01)
    server.send_signal(signal.SIGTERM)
    asking.join(60)
    assert replies == [200]
    assert server.wait(60) in (0, -signal.SIGTERM)
    assert TOKEN not in (server.stderr.read() or "")
