"""Models and servers that misbehave: each call ends with an answer, a note or one of our errors, in time."""

import asyncio
import gzip
import json
import math
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from precise_rag._worker import Worker
from precise_rag.candidate_filters import DynamicThreshold, RedundancyFilter, RelevanceFilter
from precise_rag.candidate_filters.relevance_parsing import parse_score
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import (
    BudgetExceeded,
    ContentFilterError,
    ContextLengthError,
    InputError,
    LLMConnectionError,
    LLMError,
    LLMResponseError,
    ModelError,
    PreciseRagError,
)
from precise_rag.feedback import FeedbackController, parse_judgement
from precise_rag.limited_http import MAX_REPLY_BYTES
from precise_rag.llm import Budget, OpenAIChat, load_llm
from precise_rag.llm.finish import cut_off, reported_cut_off
from precise_rag.prompts import Fence, cited_numbers
from precise_rag.rerank import CohereReranker
from precise_rag.rewriting import QueryRewriter
from precise_rag.selection import GradientSelector
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import CallRecord, Price, PriceTable, StageRecord, Trace
from precise_rag.types import Candidate, Completion, Message, Selection
from precise_rag.viz.trace_page import trace_page
from support.chat_server import ChatServer, Reply, fails, says
from support.feedback import answering

QUESTION = "Who kept the light?"
PROMPT = (Message("user", QUESTION),)
ACCEPTED = '{"reason": "so", "score": 9, "adjustment": 0}'
TEXTS = ["The light was kept by Ada.", "Bo kept it later.", "Cy kept the boats.", "Di painted the door."]
CANDIDATES = [Candidate(f"d{n}", 0, len(t), t, 0.9 - n / 10, "probability") for n, t in enumerate(TEXTS)]


@contextmanager
def client(script: Any, **options: Any) -> Iterator[OpenAIChat]:
    with ChatServer(script) as server:
        llm = OpenAIChat("m", base_url=server.url, **{"timeout": 5.0, "max_retries": 0, **options})
        try:
            yield llm
        finally:
            llm.close()


def bomb(n_bytes: int) -> Reply:
    return Reply(gzip.compress(b" " * n_bytes), headers={"Content-Encoding": "gzip"})


BAD_BODIES = {
    "gzip bomb": (bomb(64 * 2**20), "is compressed, which was not asked for"),
    "10 MB": (Reply(b" " * 10 * 2**20), "longer than 8,388,608 bytes"),
    "an error of 10 MB": (Reply(b" " * 10 * 2**20, status=500), "longer than 8,388,608 bytes"),
    "endless": (Reply(endless=0.0), "longer than 8,388,608 bytes"),
    "other compression": (Reply(b"{}", headers={"Content-Encoding": "br"}), "is compressed"),
    "deep": (Reply("[" * 100_000), "not a completion"),
    "long number": (Reply('{"created": ' + "9" * 5_000 + "}"), "not a completion"),
    "choices are a text": (Reply({"choices": "abc"}), "has no completion"),
    "a number as text": (says(7), "must be a string"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_reply_over_a_limit_is_one_error(name: str) -> None:
    reply, said = BAD_BODIES[name]
    with client([reply]) as llm, pytest.raises(LLMResponseError, match=said):
        llm.complete(PROMPT)


@pytest.mark.parametrize("name", ["gzip bomb", "10 MB", "deep"])
async def test_the_asynchronous_client_has_the_same_limits(name: str) -> None:
    reply, said = BAD_BODIES[name]
    with client([reply]) as llm:
        with pytest.raises(LLMResponseError, match=said):
            await llm.acomplete(PROMPT)
        await llm.aclose()


def test_no_compression_is_asked_for() -> None:
    with ChatServer([says("Ada.")]) as server:
        llm = OpenAIChat("m", base_url=server.url)
        llm.complete(PROMPT)
        llm.close()
        assert server.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("name", ["gzip bomb", "10 MB", "deep", "long number", "choices are a text"])
def test_embeddings_and_scores_have_limits_too(name: str) -> None:
    reply, _ = BAD_BODIES[name]
    with ChatServer([reply]) as server:
        encoder = OpenAIEncoder("e", base_url=server.url, api_key="key", max_retries=0)
        with pytest.raises(ModelError, match="openai:e returned no embeddings"):
            encoder.encode(["text"])
        url = server.url.removesuffix("/v1")
        with (
            CohereReranker(api_key="key", base_url=url, max_retries=0) as cohere,
            pytest.raises(LLMResponseError, match="cohere:"),
        ):
            cohere.score(QUESTION, CANDIDATES)


@pytest.mark.parametrize("vector", [["x"], [1e300], [None], "abc", {"a": 1}, [[1.0]], 10**400])
def test_embeddings_that_are_no_vectors_are_one_error(vector: Any) -> None:
    body = {"object": "list", "model": "e", "data": [{"index": 0, "embedding": vector}]}
    with ChatServer([Reply(body)]) as server:
        encoder = OpenAIEncoder("e", base_url=server.url, api_key="key", max_retries=0)
        with pytest.raises(ModelError, match="openai:e"):
            encoder.encode(["text"])


@pytest.mark.parametrize("score", ["high", None, 7.0, -1, {"a": 1}])
def test_scores_that_are_no_probabilities_are_one_error(score: Any) -> None:
    body = {"id": "r", "results": [{"index": 0, "relevance_score": score}], "meta": {}}
    with ChatServer([Reply(body)]) as server:
        url = server.url.removesuffix("/v1")
        with (
            CohereReranker(api_key="key", base_url=url, max_retries=0) as cohere,
            pytest.raises(LLMResponseError, match="cohere:"),
        ):
            cohere.score(QUESTION, CANDIDATES[:1])


# Time


@pytest.mark.parametrize(
    "reply", [says("late", stall=30.0), fails(429, retry_after="30"), Reply(endless=0.02)]
)
def test_a_synchronous_call_ends_with_the_budget(reply: Reply) -> None:
    started = time.monotonic()
    with client([reply], timeout=60.0, max_retries=2) as llm:
        engine = answering(llm, budget=Budget(seconds=0.3))
        with pytest.raises(BudgetExceeded, match=r"all 0\.3 used; the call that was running was left behind"):
            engine.answer(QUESTION, candidates=CANDIDATES)
    assert time.monotonic() - started < 10  # not the 30 seconds and more that the server takes


def test_a_client_that_was_left_behind_sends_no_further_request() -> None:
    with ChatServer([fails(500, retry_after_ms="400")]) as server:
        before = {thread.ident for thread in threading.enumerate()}
        llm = OpenAIChat("m", base_url=server.url, timeout=60.0, max_retries=5)
        with pytest.raises(BudgetExceeded):
            answering(llm, budget=Budget(seconds=0.2)).answer(QUESTION, candidates=CANDIDATES)
        for thread in threading.enumerate():
            if thread.ident not in before and thread.name == "precise-rag call":
                thread.join(5.0)
        assert len(server.requests) <= 1
        llm.close()


DRIPS = {
    "the head": [b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"],
    "the body": [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" "],
    "a stream": [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ", b"x"],
}


@contextmanager
def dripping(head: bytes, drop: bytes) -> Iterator[str]:
    """A server that sends the head, and then one drop after another without end."""
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        while not ended.is_set():
            with suppress(OSError):
                connection, _ = listener.accept()
                threading.Thread(target=drip, args=(connection,), daemon=True).start()

    def drip(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(2**16)
            connection.sendall(head)
            while not ended.wait(0.05):
                connection.sendall(drop)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            ended.set()


def ends_soon(task: Callable[[], Any], error: type[Exception]) -> None:
    """Fails, and does not hang, if the task has not raised the error after many times its time limit."""
    worker = Worker()
    outcome = worker.submit(task)
    worker.close()
    with pytest.raises(error):
        outcome.result(30)


@pytest.mark.parametrize("drip", DRIPS)
def test_a_reply_that_drips_ends_in_time_for_every_client(drip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precise_rag.limited_http.STREAM_TIMES", 1)
    options: dict[str, Any] = {"api_key": "key", "timeout": 0.5, "max_retries": 0}

    async def acomplete(llm: OpenAIChat) -> None:
        try:
            await llm.acomplete(PROMPT)
        finally:
            await llm.aclose()

    async def astream(llm: OpenAIChat) -> None:
        try:
            async for _ in llm.astream(PROMPT):
                pass
        finally:
            await llm.aclose()

    with dripping(*DRIPS[drip]) as url:
        llm = OpenAIChat("m", base_url=url, **options)
        ends_soon(lambda: llm.complete(PROMPT), LLMError)
        ends_soon(lambda: list(llm.stream(PROMPT)), LLMError)
        ends_soon(lambda: asyncio.run(acomplete(llm)), LLMError)
        ends_soon(lambda: asyncio.run(astream(llm)), LLMError)
        encoder = OpenAIEncoder("e", base_url=url, **options)
        ends_soon(lambda: encoder.encode(["text"]), ModelError)
        with CohereReranker(base_url=url.removesuffix("/v1"), **options) as cohere:
            ends_soon(lambda: cohere.score(QUESTION, CANDIDATES), LLMConnectionError)
        llm.close()


@pytest.mark.parametrize("live", [False, True])
async def test_an_asynchronous_call_of_any_model_ends_without_a_budget(
    live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Drips(ScriptedLLM):
        async def acomplete(self, *args: Any, **kwargs: Any) -> Completion:
            await asyncio.sleep(30)
            raise AssertionError

        async def astream(self, messages: Sequence[Message]) -> AsyncIterator[str | Completion]:
            while True:
                await asyncio.sleep(0.01)
                yield "x"

    monkeypatch.setattr("precise_rag.llm.budget.MOST_CALL_SECONDS", 0.2)
    controller = FeedbackController(max_rounds=0)
    engine = answering(Drips([]), controller=controller)

    async def ask() -> None:
        async with aclosing(engine.astream(QUESTION, candidates=CANDIDATES, live_final=live)) as pieces:
            async for _ in pieces:
                pass

    with pytest.raises(LLMConnectionError, match="did not answer in time"):
        await asyncio.wait_for(ask(), 20)


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_reply_of_any_model_is_no_answer(text: str) -> None:
    """If a later round has none, the earlier draft is the answer."""
    empty = Completion(text, "m", 1, 1)
    with pytest.raises(LLMResponseError, match="the completion is empty"):
        answering(ScriptedLLM([empty])).answer(QUESTION, candidates=CANDIDATES)
    again = '{"reason": "so", "score": 4, "adjustment": 1}'
    answer = answering(ScriptedLLM(["Ada.", again, empty]), k=2).answer(QUESTION, candidates=CANDIDATES)
    assert answer.text == "Ada."
    assert "round 2 has no draft" in answer.note


def test_an_empty_reply_that_was_paid_for_counts() -> None:
    trace = Trace(QUESTION)
    with pytest.raises(LLMResponseError):
        answering(ScriptedLLM([Completion("", "m", 70, 5)])).answer(
            QUESTION, candidates=CANDIDATES, trace=trace
        )
    assert [(call.input_tokens, call.output_tokens) for call in trace.calls] == [(70, 5)]


def test_a_foreign_model_is_left_behind_and_the_draft_is_kept() -> None:
    release = threading.Event()

    def model(prompt: str) -> str:
        if "adjustment" in prompt:
            release.wait(30.0)
            return ACCEPTED
        return "Ada kept it."

    answer = answering(load_llm(model), budget=Budget(seconds=0.3)).answer(QUESTION, candidates=CANDIDATES)
    release.set()
    assert answer.text == "Ada kept it."
    assert answer.note.startswith("the answer is not judged: seconds over budget: all 0.3 used")
    assert [call.role for call in answer.trace.calls] == ["answer", "judge"] if answer.trace else False


def test_a_live_stream_ends_with_the_budget_and_leaves_its_call() -> None:
    controller = FeedbackController(max_rounds=1)
    with client([says("ready"), says("one two three four", stall=30.0)], timeout=60.0) as llm:
        llm.complete(
            [Message("user", "Ready?")]
        )  # what is imported for the first call takes no time of the budget
        engine = answering(llm, controller=controller, budget=Budget(seconds=2.0))
        trace = Trace(QUESTION)
        items = engine.stream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True)
        assert [next(items), next(items)] == ["one ", "two "]
        with pytest.raises(BudgetExceeded, match="left behind"):
            next(items)
    (call,) = trace.calls
    assert call.error.startswith("BudgetExceeded")
    assert (call.text, call.output_tokens, call.usage_estimated) == ("one two ", 2, True)


async def test_an_asynchronous_function_model_is_left_behind_too() -> None:
    release = threading.Event()

    def model(prompt: str) -> str:
        release.wait(30.0)
        return "late"

    with pytest.raises(BudgetExceeded):
        await answering(load_llm(model), budget=Budget(seconds=0.1)).aanswer(QUESTION, candidates=CANDIDATES)
    release.set()


def test_an_event_loop_does_not_wait_for_a_model_that_was_left_behind() -> None:
    release = threading.Event()

    async def ask() -> None:
        with pytest.raises(BudgetExceeded):
            await answering(load_llm(lambda prompt: release.wait(30.0)), budget=Budget(seconds=0.1)).aanswer(
                QUESTION, candidates=CANDIDATES
            )

    asyncio.run(ask())
    assert not release.is_set()
    release.set()


def test_the_relevance_filter_holds_its_seconds_in_synchronous_calls() -> None:
    release = threading.Event()

    def model(prompt: str) -> str:
        release.wait(30.0)
        return "{}"

    relevance = RelevanceFilter(load_llm(model), batch_size=1, budget=Budget(seconds=0.2))
    selection = relevance.filter(QUESTION, CANDIDATES)
    release.set()
    assert all("seconds over budget" in reason for reason in selection.reasons)


@pytest.mark.parametrize("error", [LLMConnectionError("down"), ContextLengthError("long"), RuntimeError("x")])
def test_a_stream_that_breaks_leaves_its_call_in_the_trace(error: Exception) -> None:
    class Breaks(ScriptedLLM):
        def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
            yield "Ada "
            raise error

        async def astream(self, messages: Sequence[Message]) -> Any:
            yield "Ada "
            raise error

    async def drain(trace: Trace) -> None:
        async for _ in engine.astream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True):
            pass

    engine = answering(Breaks([]), controller=FeedbackController(max_rounds=1))
    traces = Trace(QUESTION), Trace(QUESTION)
    with pytest.raises(LLMError) as raised:
        list(engine.stream(QUESTION, candidates=CANDIDATES, trace=traces[0], live_final=True))
    with pytest.raises(type(raised.value), match=str(raised.value)):
        asyncio.run(drain(traces[1]))
    for trace in traces:
        (call,) = trace.calls
        assert call.error.startswith(type(raised.value).__name__)
        assert call.text == "Ada "


def test_a_reader_who_leaves_leaves_the_call_in_the_trace() -> None:
    trace = Trace(QUESTION)
    engine = answering(ScriptedLLM(["one two three"]), controller=FeedbackController(max_rounds=1))
    items = engine.stream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True)
    next(items)
    items.close()  # type: ignore[attr-defined]
    (call,) = trace.calls
    assert "given up" in call.error
    assert call.text == "one "


@pytest.mark.parametrize("reply", [AssertionError("a mistake"), InputError("no such option"), "text"])
def test_synchronous_and_asynchronous_calls_raise_the_same(reply: Any) -> None:
    class Odd:
        name = "odd"

        def complete(self, messages: Sequence[Message], *, schema: Any = None) -> Any:
            if isinstance(reply, Exception):
                raise reply
            return reply

        async def acomplete(self, messages: Sequence[Message], *, schema: Any = None) -> Any:
            return self.complete(messages)

    loop, relevance, rewriter = (
        answering(Odd()),
        RelevanceFilter(Odd(), batch_size=1),
        QueryRewriter(Odd()),
    )
    calls: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (
            lambda: loop.answer(QUESTION, candidates=CANDIDATES),
            lambda: loop.aanswer(QUESTION, candidates=CANDIDATES),
        ),
        (lambda: relevance.filter(QUESTION, CANDIDATES), lambda: relevance.afilter(QUESTION, CANDIDATES)),
        (lambda: rewriter.queries(QUESTION), lambda: rewriter.aqueries(QUESTION)),
    ]

    def outcome(run: Callable[[], Any]) -> tuple[type, str]:
        try:
            result = run()
        except Exception as error:
            return type(error), str(error)
        return type(result), str(getattr(result, "reasons", result))

    async def awaited(call: Callable[[], Any]) -> Any:
        return await call()

    for sync, later in calls:
        assert outcome(sync) == outcome(partial(asyncio.run, awaited(later)))


def test_a_stream_has_a_limit_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precise_rag.llm.openai._MOST_EVENTS", 50)
    with client([says("word " * 100)]) as llm, pytest.raises(LLMResponseError, match="more than 50 events"):
        list(llm.stream(PROMPT))


def test_a_lone_surrogate_in_a_question_or_document_does_not_cost_the_call() -> None:
    with ChatServer([says("Ada.")]) as server:
        llm = OpenAIChat("m", base_url=server.url, max_retries=0)
        assert llm.complete([Message("user", "Who\ud800?")]).text == "Ada."
        llm.close()
    assert server.requests[0]["messages"][0]["content"] == "Who\ufffd?"


# Prompts that are refused


def scores(messages: Sequence[Message], refused: Callable[[str], Exception | None]) -> str | Exception:
    text = messages[1].content
    if error := refused(text):
        return error
    keys = [line.split()[2] for line in text.splitlines() if " chunk " in line and "end of" not in line]
    item = {"base": 0.7, "reflection": 0.7, "critic": 0.7}
    return json.dumps({"scores": [{"id": key, **item} for key in keys]})


MANY = [Candidate(f"c{n}", 0, 8, f"Chunk {n:02}", 1 - n / 100, "probability") for n in range(10)]


@pytest.mark.parametrize("error", [ContextLengthError("too long"), ContentFilterError("filtered")])
@pytest.mark.parametrize("culprit", [0, 4, 9])
def test_one_refused_chunk_does_not_cost_its_batch(error: Exception, culprit: int) -> None:
    llm = ScriptedLLM(lambda m: scores(m, lambda text: error if f"Chunk {culprit:02}" in text else None))
    selection = RelevanceFilter(llm).filter(QUESTION, MANY)
    scored = ["relevance" in decision.candidate.scores for decision in selection.decisions]
    assert scored == [n != culprit for n in range(10)]
    assert str(error) in selection.reasons[culprit]
    assert len(llm.calls) <= 1 + 2 * math.ceil(math.log2(10))


def test_refusing_every_chunk_costs_fewer_than_two_calls_each_and_no_more_than_the_budget() -> None:
    llm = ScriptedLLM(lambda m: ContextLengthError("too long"))
    RelevanceFilter(llm).filter(QUESTION, MANY)
    assert len(llm.calls) == 19
    llm = ScriptedLLM(lambda m: ContextLengthError("too long"))
    RelevanceFilter(llm, budget=Budget(calls=5)).filter(QUESTION, MANY)
    assert len(llm.calls) == 5


def test_a_batch_whose_reply_is_cut_off_is_halved() -> None:
    def short(messages: Sequence[Message]) -> Completion:
        reply = scores(messages, lambda text: None)
        assert isinstance(reply, str)
        is_cut = len(reply) > 250
        return Completion(reply[:250], cut_off="length" if is_cut else "")

    selection = RelevanceFilter(ScriptedLLM(short)).filter(QUESTION, MANY)
    assert all("relevance" in decision.candidate.scores for decision in selection.decisions)


def test_a_server_names_its_content_filter() -> None:
    for reply in (
        fails(400, "The response was filtered by our content management policy", code="content_filter"),
        fails(400, "Your input was flagged by moderation"),
        says("", finish_reason="content_filter"),
    ):
        with client([reply]) as llm, pytest.raises(ContentFilterError):
            llm.complete(PROMPT)


@pytest.mark.parametrize("refusal", [ContextLengthError("too long"), ContentFilterError("filtered")])
def test_a_piece_that_is_refused_alone_is_left_out_and_named(refusal: LLMError) -> None:
    big = Candidate("big", 0, 9, "word " * 5_000, 1.0, "probability")

    llm = ScriptedLLM(lambda m: refusal if "word word" in m[1].content else "Ada.")
    engine = answering(llm, ScriptedLLM([ACCEPTED]), k=4)
    answer = engine.answer(QUESTION, candidates=[big, *CANDIDATES])
    assert answer.text == "Ada."
    assert [c.doc_id for c in answer.selection.kept] == ["d0", "d1", "d2"]
    assert "left out 1 chunk that the model does not accept" in answer.note
    assert answer.selection.reasons[0].startswith("left out: ")
    assert len(llm.calls) == 4  # 4, 2 and 1 chunks, then the other 3


# Replies that are cut off


@pytest.mark.parametrize(
    ("reason", "said"), [("length", "length limit"), ("content_filter", "content filter")]
)
@pytest.mark.parametrize("live", [False, True])
def test_a_draft_that_is_cut_off_is_noted(reason: str, said: str, live: bool) -> None:
    def script(request: dict[str, Any]) -> Reply:
        is_judge = "adjustment" in request["messages"][0]["content"]
        return says(ACCEPTED) if is_judge else says("Keeper 3 is", finish_reason=reason)

    with client(script) as llm:
        engine = answering(llm, controller=FeedbackController(max_rounds=1))
        *_, answer = engine.stream(QUESTION, candidates=CANDIDATES, live_final=live)
    assert not isinstance(answer, str)
    assert f"the draft of round 1 is cut off (by the {said})" in answer.note
    assert answer.trace is not None
    assert json.loads(answer.trace.to_json())["calls"][0]["cut_off"] == reason
    assert f"cut off by the {said}" in answer.trace.to_html()


def test_a_judgement_that_is_cut_off_is_not_believed() -> None:
    cut = Completion("Evaluation Score: 1", cut_off="length")
    answer = answering(ScriptedLLM(["Ada."]), ScriptedLLM([cut, ACCEPTED])).answer(
        QUESTION, candidates=CANDIDATES
    )
    assert answer.note == "accepted with 9 of 10"
    answer = answering(ScriptedLLM(["Ada."]), ScriptedLLM([cut, cut])).answer(QUESTION, candidates=CANDIDATES)
    assert answer.note == "the judgement is cut off (by the length limit)"


def test_a_score_or_query_that_is_cut_off_is_not_believed() -> None:
    llm = ScriptedLLM(lambda m: Completion("0", cut_off="length"))
    selection = RelevanceFilter(llm, mode="single").filter(QUESTION, CANDIDATES[:1])
    assert selection.reasons[0].startswith("unscored")
    rewriter = QueryRewriter(ScriptedLLM([Completion("who kept the", cut_off="length")]))
    assert rewriter.queries(QUESTION) == (QUESTION,)


def test_reasons_of_other_servers_are_known() -> None:
    assert [cut_off(r) for r in ("MAX_TOKENS", "SAFETY", "end_turn", None, 3)] == [
        "length",
        "content_filter",
        "",
        "",
        "",
    ]
    assert reported_cut_off(None, {"finish_reason": "stop"}, {"stop_reason": "max_tokens"}) == "length"


# Numbers and texts


class Usage:
    """A model whose reply is fine but for its usage."""

    name = "usage"

    def __init__(self, usage: Any) -> None:
        self.usage = usage

    def complete(self, messages: Sequence[Message], *, schema: Any = None) -> Completion:
        text = ACCEPTED if schema else "Ada."
        return Completion(text, "usage", self.usage, self.usage)

    async def acomplete(self, messages: Sequence[Message], *, schema: Any = None) -> Completion:
        return self.complete(messages, schema=schema)


@pytest.mark.parametrize("usage", [None, "12", math.nan, math.inf, -5, 10**400, True, 1.5, [1]])
def test_a_usage_that_is_no_number_is_estimated_and_costs_no_answer(usage: Any) -> None:
    prices = PriceTable({"usage": Price(1.0, 1.0)})
    answer = answering(Usage(usage), prices=prices, budget=Budget(cost=1.0)).answer(
        QUESTION, candidates=CANDIDATES
    )
    assert answer.text == "Ada."
    assert answer.trace is not None
    assert all(call.usage_estimated and call.input_tokens > 0 for call in answer.trace.calls)
    body = says("Ada.").body
    assert isinstance(body, dict)
    reported = usage if isinstance(usage, str | int | float | list) else 0
    with client([Reply({**body, "usage": {"prompt_tokens": reported, "completion_tokens": 1}})]) as llm:
        assert llm.complete(PROMPT).text == "Ada."
    with client([Reply({**body, "usage": "none"})]) as llm:
        assert llm.complete(PROMPT).usage_estimated


@pytest.mark.parametrize("digits", [400, 5_000, 100_000])
def test_long_numbers_in_replies_are_read_as_none(digits: int) -> None:
    number = "1" + "0" * digits
    for reply in (f'{{"score": {number}}}', f'{{"score": "{number}"}}', f"Evaluation Score: {number}"):
        assert parse_judgement(reply).status == "unparsed"
        assert parse_score(reply) is None
    assert cited_numbers(f"Ada [{number}].") == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 0, "3", True, 10**400])
def test_limits_must_be_numbers(value: Any) -> None:
    for name in ("calls", "tokens", "seconds", "cost"):
        with pytest.raises(InputError, match=f"budget: {name} must be"):
            Budget(**{name: value})
    with pytest.raises(InputError, match="timeout must be"):
        OpenAIChat("m", timeout=value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, "3", True, 10**400])
def test_prices_floors_and_settings_must_be_numbers(value: Any) -> None:
    for make in (
        lambda: PriceTable({"m": Price(value, 1.0)}),
        lambda: PriceTable({"m": Price(1.0, value)}),
        lambda: DynamicThreshold(min_score=value),
        lambda: DynamicThreshold(ceiling=value),
        lambda: DynamicThreshold(tight=value),
        lambda: DynamicThreshold(min_keep=value),
        lambda: DynamicThreshold(cap=value),
        lambda: GradientSelector(min_score=value) if value != -1 else GradientSelector(min_gap=value),
        lambda: GradientSelector(min_k=value),
        lambda: GradientSelector(max_tokens=value),
        lambda: RedundancyFilter(similarity_threshold=value),
        lambda: FeedbackController(max_rounds=value),
        lambda: FeedbackController(accept=value),
        lambda: RelevanceFilter(ScriptedLLM([]), batch_size=value),
        lambda: OpenAIChat("m", max_retries=value),
        lambda: OpenAIEncoder("m", timeout=value),
        lambda: CohereReranker(timeout=value),
        lambda: CohereReranker(batch_size=value),
    ):
        with pytest.raises(InputError, match="must "):
            make()


ODD_TEXTS = ["\ud800", "a\udfffb", "\x00\x1b[31m", "\u202e"]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_an_answer_with_odd_characters_can_be_written(text: str) -> None:
    def model(messages: Sequence[Message]) -> str:
        return (
            json.dumps({"score": 9, "reason": text}) if "adjustment" in messages[0].content else f"Ada{text}"
        )

    answer = answering(ScriptedLLM(model)).answer(QUESTION + text, candidates=CANDIDATES)
    assert answer.trace is not None
    record = json.loads(answer.trace.to_json().encode("utf-8"))
    assert record["answer"] == answer.text == f"Ada{text}"
    answer.trace.to_html().encode("utf-8")


def test_a_trace_with_odd_values_can_be_written() -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no")

    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    circular: dict[str, Any] = {}
    circular["self"] = circular
    trace = Trace("q\ud800")
    odd = {
        "nan": math.nan,
        "huge": 10**5_000,
        "array": np.float32(0.5),
        "deep": deep,
        "circular": circular,
        "unprintable": Unprintable(),
        (1, 2): {3, 4},
        "number": np.int64(3),
    }
    trace.settings = odd  # type: ignore[assignment]
    candidate = Candidate("d", 0, 1, "x", math.inf, "rank", scores={"dense": math.nan})
    trace.add(StageRecord("selection", Selection.keep_all([candidate]), math.nan, odd))  # type: ignore[arg-type]
    trace.add(CallRecord("answer", "v", "m", math.inf, cost=math.nan))
    record = json.loads(trace.to_json().encode("utf-8"))
    assert record["settings"]["number"] == 3
    assert record["settings"]["circular"]["self"] == "[the value contains itself]"
    assert record["stages"][0]["candidates"][0]["score"] == "inf"
    for include_text in (True, False):
        trace.to_html(include_text).encode("utf-8")


@pytest.mark.parametrize("record", [{}, [], None, {"stages": 3}, {"stages": [{}]}])
def test_a_record_that_is_no_trace_is_one_error(record: Any) -> None:
    with pytest.raises(InputError, match=r"must be one that Trace\.to_dict made"):
        trace_page(record)


def test_a_failing_observer_or_cache_costs_no_answer() -> None:
    class Full(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            raise OSError("disk full")

    def observer(record: Any) -> None:
        raise RuntimeError("no")

    trace = Trace(QUESTION, observer=observer)
    answer = answering(ScriptedLLM(["Ada.", ACCEPTED])).answer(QUESTION, candidates=CANDIDATES, trace=trace)
    assert answer.text == "Ada."
    llm = ScriptedLLM(lambda m: scores(m, lambda text: None))
    selection = RelevanceFilter(llm, cache=Full()).filter(QUESTION, MANY)
    assert len(selection.kept) == 10


# Spam


@pytest.mark.parametrize(
    "honest", [[0.7, 0.65, 0.6, 0.2], [0.6, 0.55, 0.5, 0.45], [0.75, 0.7, 0.3, 0.1], [0.5, 0.4, 0.3, 0.2]]
)
def test_spam_does_not_lift_the_threshold_over_every_honest_chunk(honest: list[float]) -> None:
    rule = DynamicThreshold()
    for n_spam in (1, 6, 50):
        spammed = [*honest, *[1.0] * n_spam]
        kept = rule.relevant(spammed, rule.of(spammed))
        assert kept[0]
    assert rule.of([*honest, *[1.0] * 6]).reason == "capped, for 6 of 10 scores are near 1"
    assert DynamicThreshold(cap=None).of([*honest, *[1.0] * 6]).value > honest[0]


def test_a_mark_in_nested_pieces_does_not_survive() -> None:
    mark = "0123456789abcdef"
    for depth in (1, 2, 3, 500):
        for at in range(1, len(mark)):
            text = mark[:at] * depth + mark + mark[at:] * depth
            assert mark not in Fence(mark).block("passage", text).split("\n")[1]
    with pytest.raises(InputError, match="letters and digits"):
        Fence("a b")


def test_no_reply_is_larger_than_its_limit_says() -> None:
    assert MAX_REPLY_BYTES == 8 * 2**20
    assert issubclass(LLMResponseError, PreciseRagError)
