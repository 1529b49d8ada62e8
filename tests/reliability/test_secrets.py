"""Keys and passwords do not leave: not in errors, traces, pages, logs, names or pickles."""

import asyncio
import base64
import logging
import pickle
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from pydantic import SecretStr

from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import InputError, LLMError, PreciseRagError
from precise_rag.feedback import FeedbackController
from precise_rag.llm import OpenAIChat, load_llm
from precise_rag.redaction import HIDDEN, RedactedStream, redacted, remember, without_password
from precise_rag.rerank import CohereReranker
from precise_rag.rewriting import QueryRewriter
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Candidate
from support.chat_server import ChatServer, Reply, fails, says
from support.feedback import answering
from support.misbehaving import PROMPT, QUESTION, completed

KEY = "Tr0ub4dor-and-3-staples"
PASSWORD = "correct-h0rse"
SENT = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
CANDIDATES = [Candidate("d", 0, 9, "Ada kept the light.", 0.9, "probability")]


def echo(status: int) -> Reply:
    """An error that repeats the key in many ways."""
    said = f"key {KEY}; Authorization: Bearer {KEY}; Basic {SENT}; " + "x" * 370 + KEY + f" {PASSWORD}"
    return fails(status, said, echoed_key=KEY, retry_after=KEY * 3)


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
    for secret in (KEY, PASSWORD, KEY[:12], SENT):
        assert secret not in text


@contextmanager
def connected(script: Any) -> Iterator[dict[str, Any]]:
    """The options of a client of a server with a script, with a key and a password."""
    with ChatServer(script) as server:
        url = server.url.replace("://", f"://user:{PASSWORD}@")
        yield {"base_url": url, "api_key": KEY, "max_retries": 0}


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_errors_names_and_pickles_of_clients_do_not_show_the_key_that_a_server_repeats(status: int) -> None:
    with ExitStack() as opened:
        options = opened.enter_context(connected([echo(status)]))
        llm = opened.enter_context(closing(OpenAIChat("m", extra_headers={"X-Api-Key": KEY}, **options)))
        encoder = OpenAIEncoder("e", **options)
        cohere = CohereReranker(**options | {"base_url": options["base_url"].removesuffix("/v1")})
        opened.callback(cohere.close)
        for call in (
            lambda: llm.complete(PROMPT),
            lambda: list(llm.stream(PROMPT)),
            lambda: asyncio.run(completed(llm)),
            lambda: encoder.encode(["text"]),
            lambda: cohere.score(QUESTION, CANDIDATES),
        ):
            with pytest.raises(PreciseRagError) as raised:
                call()
            assert_clean(everything(raised.value))
    for part in (llm, encoder, cohere):
        again = pickle.loads(pickle.dumps(part))
        assert_clean(f"{part!r} {part.name} {pickle.dumps(part)!r} {again!r}")
    assert_clean(llm.base_url)


def test_the_loop_its_trace_and_its_pages_do_not_show_it() -> None:
    def script(request: dict[str, Any]) -> Reply:
        is_judge = "adjustment" in request["messages"][0]["content"]
        return echo(500) if is_judge else says(f"My key is {KEY}.")

    with connected(script) as options, closing(OpenAIChat("m", **options)) as llm:
        answer = answering(llm).answer(QUESTION, candidates=CANDIDATES)
    assert_clean(answer.note + repr(answer))
    answer.trace.settings = {"headers": {"Authorization": f"Bearer {KEY}"}, KEY: 1}
    for include_text in (True, False):
        assert_clean(answer.trace.to_json(include_text))
        assert_clean(answer.trace.to_html(include_text))


def test_a_password_in_the_address_is_sent_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with ChatServer([says("Ada.")]) as server, caplog.at_level(logging.DEBUG):
        url = server.url.replace("://", f"://user:{PASSWORD}@")
        with closing(OpenAIChat("m", base_url=url, api_key=KEY, max_retries=0)) as llm:
            assert llm.complete(PROMPT).text == "Ada."
        assert server.headers[0]["authorization"] == f"Basic {SENT}"
    shown = [r.getMessage() for r in caplog.records if not r.name.startswith("httpcore")]
    assert_clean("\n".join(shown))
    assert without_password("http://u:p%40ss@host:1/v1") == ("http://host:1/v1", ("u", "p@ss"))
    assert without_password("http://host/v1") == ("http://host/v1", None)
    for url in (f"http://host/v1?api_key={KEY}", f"user:{PASSWORD}@host/v1"):
        with pytest.raises(InputError, match=r"^base_url must begin with .* and have no query$"):
            OpenAIEncoder(base_url=url)


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_a_stream_shows_what_the_whole_text_shows(size: int) -> None:
    remember(KEY, "purple", "purpleish", "s-secret-of-six")
    for text in (
        f"It is [1]. The key is {KEY}, not {KEY[:9]} nor {KEY[:-1]}{KEY}",
        "impurple purple purples purpleish; https://user:hunter2@host/v1, http://example.org/a?b=c purpl",
    ):
        stream, pieces = RedactedStream(), [text[at : at + size] for at in range(0, len(text), size)]
        shown = [*map(stream.add, pieces), stream.add("", last=True)]
        assert "".join(shown) == redacted(text)


async def test_a_key_in_a_live_answer_is_shown_to_nobody() -> None:
    script = lambda request: says(f"It is [1]. The key is {KEY}.")  # noqa: E731
    with connected(script) as options, closing(OpenAIChat("m", **options)) as llm:
        rag = answering(llm, controller=FeedbackController(max_rounds=0))
        for asked in (llm.stream(PROMPT), rag.stream(QUESTION, candidates=CANDIDATES, live_final=True)):
            *pieces, last = asked
            assert "".join(pieces) == last.text == f"It is [1]. The key is {HIDDEN}."
        *pieces, last = [item async for item in llm.astream(PROMPT)]
        assert "".join(pieces) == last.text
        await llm.aclose()


def test_a_key_in_use_is_hidden_however_many_clients_come_after_it_and_in_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("precise_rag.redaction._remembered", {})
    key = "first+key/of=many"
    with ExitStack() as opened:
        server = opened.enter_context(ChatServer([fails(400, f"bad {key}, ?key=first%2Bkey%2fof%3Dmany")]))
        llm = opened.enter_context(closing(OpenAIChat("m", base_url=server.url, api_key=key, max_retries=0)))
        remember(*(f"another-key-{i:06d}" for i in range(1001)))
        with pytest.raises(LLMError, match=r"bad \[hidden\], \?key=\[hidden\]"):
            llm.complete(PROMPT)


def test_a_request_costs_little_however_many_keys_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precise_rag.redaction._remembered", {})
    started = time.process_time()
    for n in range(400):
        remember(f"key/of+tenant-{n:06d}")
        assert redacted(f"bad KEY/of+tenant-{n:06d}") == f"bad {HIDDEN}"
    assert time.process_time() - started < 5


@pytest.mark.parametrize("kept", [str, SecretStr])
def test_a_key_of_a_framework_s_model_is_known(kept: Callable[[str], Any]) -> None:
    class Keyed(FakeListChatModel):
        api_key: Any = kept(f"key-of-{kept.__name__}-{KEY}")

        def _call(self, *args: Any, **options: Any) -> str:
            raise RuntimeError(f"bad key key-of-{kept.__name__}-{KEY}")

    with pytest.raises(LLMError) as error:
        load_llm(Keyed(responses=["a"])).complete(PROMPT)
    assert "key-of" not in str(error.value)


def test_a_model_that_is_a_function_does_not_show_it() -> None:
    def model(prompt: str) -> str:
        raise KeyError(f"Authorization: Bearer {KEY}")

    remember(KEY)
    with pytest.raises(LLMError) as raised:
        load_llm(model).complete(PROMPT)
    assert_clean(str(raised.value) + repr(raised.value.__cause__))


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpenAIChat("m", api_key="other-key"),
        lambda: OpenAIEncoder("m", api_key="other-key"),
        lambda: CohereReranker(api_key="other-key"),
        lambda: load_llm(FakeListChatModel(responses=["yes"])),
        lambda: load_llm(lambda prompt: prompt),
    ],
)
def test_keys_that_the_environment_held_when_a_client_was_made_are_hidden(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precise_rag.redaction._remembered", {})
    monkeypatch.setenv("SOME_VENDOR_API_KEY", "violet-umbrella")
    monkeypatch.setenv("https_proxy", f"http://user:{PASSWORD}@proxy")
    make()
    monkeypatch.delenv("SOME_VENDOR_API_KEY")
    assert redacted(f"violet-umbrella is wrong, {SENT}") == f"{HIDDEN} is wrong, {HIDDEN}"


def test_a_short_key_must_stand_alone_and_other_text_stays() -> None:
    remember("purple", "violet-elephant")
    assert redacted("purple, impurple, xviolet-elephantx") == f"{HIDDEN}, impurple, x{HIDDEN}x"
    assert redacted("https://user:hunter2@host/v1") == f"https://{HIDDEN}@host/v1"
    text = "set OPENAI_API_KEY; mail ada@example.org, see https://example.org/a?page=2"
    assert redacted(text) == text


@pytest.mark.parametrize("status", [200, 400])
def test_a_trace_without_text_holds_no_text_of_documents_prompts_or_servers(status: int) -> None:
    document, question, gossip = texts = ("lighthouse ledger", "harbour question", "server gossip")
    reply = fails(400, gossip)
    if status == 200:
        reply = says(gossip)
        reply.body["model"] = gossip  # type: ignore[index]
    trace = Trace(question)
    candidates = [Candidate("d", 0, 9, document, 0.9, "probability")]
    with connected([reply]) as options, closing(OpenAIChat("m", **options)) as llm:
        QueryRewriter(llm).queries(question, trace=trace)
        with trace.stage("relevance") as stage:
            stage.outcome = RelevanceFilter(llm).filter(question, candidates, trace=trace)
        drafts = ScriptedLLM([f"{document}!", LLMError(gossip)])
        engine = answering(drafts, llm, FeedbackController(max_rounds=2))
        engine.answer(question, candidates=candidates, trace=trace)
    for page in (trace.to_json(include_text=False), trace.to_html(include_text=False)):
        assert [text for text in texts if text in page] == []
    assert [text for text in texts if text not in trace.to_json()] == []
