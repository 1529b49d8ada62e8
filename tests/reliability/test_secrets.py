"""Keys and passwords do not leave: not in errors, traces, pages, logs, names or pickles."""

import asyncio
import base64
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import InputError, LLMError, PreciseRagError
from precise_rag.feedback import FeedbackController
from precise_rag.llm import OpenAIChat, load_llm
from precise_rag.llm.framework import LangChainLLM
from precise_rag.redaction import (
    HIDDEN,
    KeyFreeStream,
    redacted,
    remember,
    without_known_keys,
    without_password,
)
from precise_rag.rerank import CohereReranker
from precise_rag.rewriting import QueryRewriter
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Message
from support.chat_server import ChatServer, Reply, fails, says
from support.feedback import answering

KEY = "Tr0ub4dor-and-3-staples"
PASSWORD = "correct-h0rse"
QUESTION = "Who kept the light?"
PROMPT = (Message("user", QUESTION),)
CANDIDATES = [Candidate("d", 0, 9, "Ada kept the light.", 0.9, "probability")]
STATUSES = (400, 401, 403, 404, 413, 422, 429, 500, 503)


def echo(status: int, text: str = "") -> Reply:
    """An error that repeats the key in many ways."""
    said = f"{text} key {KEY}; Authorization: Bearer {KEY}; " + "x" * 370 + KEY + f" {PASSWORD}"
    return fails(status, said, echoed_key=KEY)


def with_password(url: str) -> str:
    return url.replace("://", f"://user:{PASSWORD}@")


def everything(error: BaseException | None) -> str:
    """All that an error shows: messages, chains, notes, attributes, pickles."""
    shown = []
    while error is not None:
        shown += [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)]
        if isinstance(error, PreciseRagError):
            shown.append(repr(pickle.loads(pickle.dumps(error))))
        error = error.__cause__ or error.__context__
    return "\n".join(shown)


def assert_clean(text: str) -> None:
    for secret in (KEY, PASSWORD, KEY[:12], base64.b64encode(f"user:{PASSWORD}".encode()).decode()):
        assert secret not in text


@pytest.fixture
def client() -> Iterator[Any]:
    clients: list[OpenAIChat] = []
    servers: list[ChatServer] = []

    def make(reply: Any, **options: Any) -> OpenAIChat:
        server = ChatServer(reply if callable(reply) else [reply])
        servers.append(server.__enter__())
        url = with_password(server.url)
        clients.append(OpenAIChat("m", base_url=url, api_key=KEY, max_retries=0, **options))
        return clients[-1]

    yield make
    for llm in clients:
        llm.close()
    for server in servers:
        server.__exit__()


@pytest.mark.parametrize("status", STATUSES)
def test_errors_of_a_server_that_repeats_the_key_do_not_show_it(status: int, client: Any) -> None:
    llm = client(echo(status))
    with pytest.raises(LLMError) as raised:
        llm.complete(PROMPT)
    assert_clean(everything(raised.value))
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    with pytest.raises(LLMError) as raised:
        list(llm.stream(PROMPT))
    assert_clean(everything(raised.value))


@pytest.mark.parametrize("status", STATUSES)
async def test_asynchronous_errors_do_not_show_it_either(status: int, client: Any) -> None:
    llm = client(echo(status))
    with pytest.raises(LLMError) as raised:
        await llm.acomplete(PROMPT)
    assert_clean(everything(raised.value))
    with pytest.raises(LLMError) as raised:
        async for _ in llm.astream(PROMPT):
            pass
    assert_clean(everything(raised.value))
    await llm.aclose()


@pytest.mark.parametrize("status", [*STATUSES, 200])
def test_encoders_and_rerankers_do_not_show_it(status: int) -> None:
    with ChatServer([echo(status)]) as server:
        url = with_password(server.url)
        encoder = OpenAIEncoder("e", base_url=url, api_key=KEY, max_retries=0)
        with pytest.raises(PreciseRagError) as raised:
            encoder.encode(["text"])
        assert_clean(everything(raised.value))
        with CohereReranker(api_key=KEY, base_url=url.removesuffix("/v1"), max_retries=0) as cohere:
            with pytest.raises(PreciseRagError) as raised:
                cohere.score(QUESTION, CANDIDATES)
            assert_clean(everything(raised.value))
            assert_clean(repr(encoder) + repr(cohere) + encoder.name + cohere.name)
            assert_clean(repr(pickle.dumps(encoder)) + repr(pickle.dumps(cohere)))


def test_the_loop_its_trace_and_its_pages_do_not_show_it(client: Any) -> None:
    def script(request: dict[str, Any]) -> Reply:
        is_judge = "adjustment" in request["messages"][0]["content"]
        return echo(500) if is_judge else says(f"My key is {KEY}.")

    answer = answering(client(script)).answer(QUESTION, candidates=CANDIDATES)
    assert answer.trace is not None
    assert_clean(answer.note + answer.text + repr(pickle.dumps(answer)))
    answer.trace.settings = {"headers": {"Authorization": f"Bearer {KEY}"}, KEY: 1}
    for include_text in (True, False):
        assert_clean(answer.trace.to_json(include_text))
        assert_clean(answer.trace.to_html(include_text))
    assert_clean(str(answer.trace.calls[-1].to_dict()))


@pytest.mark.parametrize("headers", [{"retry-after": KEY * 3}, {"content-encoding": "gz" * 18 + KEY}])
def test_headers_of_a_server_are_not_quoted_in_part(headers: dict[str, str], client: Any) -> None:
    llm = client(Reply({"error": {"message": "slow down"}}, 429, headers))
    with pytest.raises(LLMError) as raised:
        llm.complete(PROMPT)
    assert KEY[:4] not in str(raised.value)


def test_names_and_pickles_of_a_client_do_not_show_it(client: Any) -> None:
    llm = client(says("Ada."), extra_headers={"X-Api-Key": KEY})
    assert_clean(repr(llm) + llm.base_url + repr(pickle.dumps(llm)) + repr(pickle.loads(pickle.dumps(llm))))


def test_a_password_in_the_address_is_sent_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with ChatServer([says("Ada.")]) as server, caplog.at_level(logging.DEBUG):
        llm = OpenAIChat("m", base_url=with_password(server.url), api_key=KEY, max_retries=0)
        assert llm.complete(PROMPT).text == "Ada."
        llm.close()
        sent = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
        assert server.headers[0]["authorization"] == f"Basic {sent}"
    shown = [r.getMessage() for r in caplog.records if not r.name.startswith("httpcore")]
    assert_clean("\n".join(shown))


def test_models_of_other_libraries_and_functions_do_not_show_it() -> None:
    remember(KEY)

    class Refused(RuntimeError):
        status_code = 401

    def model(prompt: str) -> str:
        raise Refused(f"Authorization: Bearer {KEY}")

    def mistaken(prompt: str) -> str:
        raise KeyError(f"no {KEY}")

    for function in (model, mistaken):
        with pytest.raises(LLMError) as raised:
            load_llm(function).complete(PROMPT)
        said = [str(raised.value), repr(raised.value.__cause__)]
        assert_clean("\n".join(said))
        with pytest.raises(LLMError) as raised:
            asyncio.run(load_llm(function).acomplete(PROMPT))
        assert_clean(str(raised.value) + repr(raised.value.__cause__))


@pytest.mark.parametrize(
    "text",
    [
        "sk-abc123def456ghi789jkl",
        "sk-proj-****************wxyz",
        "Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc",
        "Basic dXNlcjpwYXNzd29yZA==",
        "https://user:hunter2@host/v1",
        "https://host/v1?api_key=abc123&x=1",
        '"api_key": "abcdefgh1234"',
        "hf_abcdefghijklmnopqrstuvwx",
    ],
)
def test_text_in_the_form_of_a_key_is_hidden(text: str) -> None:
    assert HIDDEN in redacted(f"said {text} to us")
    assert HIDDEN in str(InputError(f"said {text} to us"))


@pytest.mark.parametrize(
    "text",
    [
        "check api_key or OPENAI_API_KEY",
        "Bearer bonds and basic principles of sk-learn",
        "set OPENAI_API_KEY or pass api_key",
        "mail ada@example.org, see https://example.org/a?page=2",
        "the password: ask the harbour master",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert redacted(text) == text


class LangChainModel:
    model = "m"

    def invoke(self, messages: Any) -> Any:
        raise RuntimeError("the key VIOLET-umbrella is wrong")


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpenAIChat("m", api_key="other-key"),
        lambda: OpenAIEncoder("m", api_key="other-key"),
        lambda: CohereReranker(api_key="other-key"),
        lambda: LangChainLLM(LangChainModel()),
        lambda: load_llm(lambda prompt: prompt),
    ],
)
def test_keys_that_the_environment_held_when_a_client_was_made_are_hidden(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precise_rag.redaction._remembered", {})
    monkeypatch.setenv("SOME_VENDOR_API_KEY", "violet-umbrella")
    make()
    monkeypatch.delenv("SOME_VENDOR_API_KEY")
    assert redacted("the key violet-umbrella is wrong") == f"the key {HIDDEN} is wrong"
    assert redacted("VIOLET-UMBRELLA") == HIDDEN


@given(st.data())
def test_a_stream_in_any_pieces_hides_what_the_joined_text_hides(data: st.DataObject) -> None:
    keys = ["abcabd", "abcabcabcabcX", "bcabcabcabcXabc", "cabdab"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("precise_rag.redaction._remembered", {})
        remember(*keys)
        parts = st.sampled_from([*keys, "abc", "ABC", "abcabcabcabc", "a", " ", ".", "X"])
        text = "".join(data.draw(st.lists(parts, max_size=8)))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
        stream = KeyFreeStream()
        pieces = [stream.add(text[a:b]) for a, b in pairwise([0, *cuts, len(text)])]
        assert "".join([*pieces, stream.end()]) == without_known_keys(text)


def test_text_that_cannot_become_a_key_is_not_held_back() -> None:
    remember("violet-elephant")
    stream = KeyFreeStream()
    assert stream.add("A viol") == "A "
    assert stream.add("in plays.") == "violin plays."
    assert stream.end() == ""


@pytest.mark.parametrize("is_async", [False, True])
def test_a_key_in_pieces_of_a_stream_does_not_reach_the_reader(is_async: bool, client: Any) -> None:
    event = {"object": "chat.completion.chunk", "created": 0, "id": "c", "model": "m"}
    words = ["The ", "key ", "is ", KEY[:5], KEY[5:9], KEY[9:], ". It", " is", f" {KEY[:8]}"]
    deltas: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": word}, "finish_reason": None} for word in words
    ]
    deltas.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    body = "".join(f"data: {json.dumps({**event, 'choices': [delta]})}\n\n" for delta in deltas)
    llm = client(Reply(body + "data: [DONE]\n\n", headers={"Content-Type": "text/event-stream"}))

    async def alist() -> list[Any]:
        items = [item async for item in llm.astream(PROMPT)]
        await llm.aclose()
        return items

    *pieces, completion = asyncio.run(alist()) if is_async else list(llm.stream(PROMPT))
    assert "".join(pieces) == completion.text == f"The key is {HIDDEN}. It is {KEY[:8]}"


def test_keys_are_hidden_as_in_urls_and_in_json() -> None:
    remember('pa"ss/w0rd')
    assert redacted(json.dumps({"x": 'pa"ss/w0rd'})) == json.dumps({"x": HIDDEN})
    assert redacted("pa%22ss%2Fw0rd") == HIDDEN


def test_only_a_short_key_must_stand_alone() -> None:
    remember("purple", "violet-elephant")
    assert redacted("purple, impurple, xviolet-elephantx") == f"{HIDDEN}, impurple, x{HIDDEN}x"


def test_an_address_is_split() -> None:
    assert without_password("http://u:p%40ss@host:1/v1") == ("http://host:1/v1", ("u", "p@ss"))
    assert without_password("http://host/v1") == ("http://host/v1", None)
    assert without_password(None) == (None, None)


@pytest.mark.parametrize("text", ["a.", "sk-", "://", "Bearer ", "?key=", "a" * 50 + "@", "api_key= "])
def test_hiding_takes_linear_time(text: str) -> None:
    redacted(text * (200_000 // len(text)))


SECRET_TEXTS = ("lighthouse ledger", "harbour question", "server gossip")


@pytest.mark.parametrize("status", [None, 400, 500])
def test_a_trace_without_text_holds_no_text_of_documents_prompts_or_servers(
    status: int | None, client: Any
) -> None:
    document, question, gossip = SECRET_TEXTS
    reply: Any = fails(status, gossip) if status else says(gossip)
    if status is None:
        reply.body["model"] = gossip  # type: ignore[index]
    llm = client(reply)
    trace = Trace(question)
    found = [Candidate("d", 0, 9, document, 0.9, "probability")]
    QueryRewriter(llm).queries(question, trace=trace)
    with trace.stage("relevance") as stage:
        stage.outcome = RelevanceFilter(llm).filter(question, found, trace=trace)
    engine = answering(ScriptedLLM([f"{document}!", LLMError(gossip)]), llm, FeedbackController(max_rounds=2))
    engine.answer(question, candidates=found, trace=trace)
    for page in (trace.to_json(include_text=False), trace.to_html(include_text=False)):
        for text in SECRET_TEXTS:
            assert text not in page
    assert all(text in trace.to_json() for text in SECRET_TEXTS)
