"""Keys and passwords do not leave: not in errors, traces, pages, logs, names or pickles."""

import asyncio
import base64
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import LLMError, PreciseRagError
from precise_rag.feedback import FeedbackController
from precise_rag.llm import OpenAIChat, load_llm
from precise_rag.llm.framework import LangChainLLM
from precise_rag.redaction import HIDDEN, redacted, remember, without_password
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
    return fails(status, said, echoed_key=KEY, retry_after=KEY * 3)


def with_password(url: str) -> str:
    return url.replace("://", f"://user:{PASSWORD}@")


def everything(error: BaseException | None) -> str:
    """All that an error shows: messages, causes, notes, attributes, pickles."""
    shown = []
    while error is not None:
        shown += [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)]
        if isinstance(error, PreciseRagError):
            shown.append(repr(pickle.loads(pickle.dumps(error))))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
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

    async def drain() -> None:
        try:
            await llm.acomplete(PROMPT)
        finally:
            await llm.aclose()

    for call in (
        lambda: llm.complete(PROMPT),
        lambda: list(llm.stream(PROMPT)),
        lambda: asyncio.run(drain()),
    ):
        with pytest.raises(LLMError) as raised:
            call()
        assert_clean(everything(raised.value))


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
    assert_clean(answer.note)
    answer.trace.settings = {"headers": {"Authorization": f"Bearer {KEY}"}, KEY: 1}
    for include_text in (True, False):
        assert_clean(answer.trace.to_json(include_text))
        assert_clean(answer.trace.to_html(include_text))


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
    assert without_password("http://u:p%40ss@host:1/v1") == ("http://host:1/v1", ("u", "p@ss"))
    assert without_password("http://host/v1") == ("http://host/v1", None)


def test_models_of_other_libraries_and_functions_do_not_show_it() -> None:
    remember(KEY)

    class Refused(RuntimeError):
        status_code = 401

    def model(prompt: str) -> str:
        raise Refused(f"Authorization: Bearer {KEY}")

    def mistaken(prompt: str) -> str:
        raise KeyError(f"no {KEY}")

    for function in (model, mistaken):
        llm = load_llm(function)
        for call in (lambda: llm.complete(PROMPT), lambda: asyncio.run(llm.acomplete(PROMPT))):  # noqa: B023
            with pytest.raises(LLMError) as raised:
                call()
            assert_clean(str(raised.value) + repr(raised.value.__cause__))


class LangChainModel:
    model = "m"

    def invoke(self, messages: Any) -> Any:
        raise RuntimeError("the key violet-umbrella is wrong")


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


def test_a_short_key_must_stand_alone_and_other_text_stays() -> None:
    remember("purple", "violet-elephant")
    assert redacted("purple, impurple, xviolet-elephantx") == f"{HIDDEN}, impurple, x{HIDDEN}x"
    assert redacted("https://user:hunter2@host/v1") == f"https://{HIDDEN}@host/v1"
    text = "set OPENAI_API_KEY; mail ada@example.org, see https://example.org/a?page=2"
    assert redacted(text) == text


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
