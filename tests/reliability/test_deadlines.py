"""Models and servers that take too long: a call ends in time, and what goes on is left behind."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import pytest

from precise_rag._worker import Worker
from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.errors import BudgetExceeded, LLMConnectionError
from precise_rag.feedback import FeedbackController
from precise_rag.llm import Budget, OpenAIChat, load_llm
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Completion, Message
from support.chat_server import ChatServer, Reply, fails, says
from support.feedback import answering
from support.misbehaving import ACCEPTED, CANDIDATES, PROMPT, QUESTION, client

ONE_ROUND = FeedbackController(max_rounds=1)


@pytest.mark.parametrize(
    "reply", [says("late", stall=60.0), fails(429, retry_after="60"), Reply(endless=0.02)]
)
def test_a_synchronous_call_ends_with_the_budget(reply: Reply) -> None:
    with client([reply], timeout=60.0, max_retries=2) as llm:
        engine = answering(llm, budget=Budget(seconds=0.3))
        left = r"all 0\.3 used; the call that was running was left behind"
        ends_soon(lambda: engine.answer(QUESTION, candidates=CANDIDATES), BudgetExceeded, left)


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


def ends_soon(task: Callable[[], Any], error: type[Exception], match: str | None = None) -> None:
    """Fails, and does not hang, if the task has not raised the error after many times its time limit."""
    worker = Worker()
    outcome = worker.submit(task)
    worker.close()
    with pytest.raises(error, match=match):
        outcome.result(30)


async def drain(llm: Any, live: bool) -> None:
    engine = answering(llm, controller=ONE_ROUND)
    async with aclosing(engine.astream(QUESTION, candidates=CANDIDATES, live_final=live)) as items:
        async for _ in items:
            pass


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("drip", DRIPS)
def test_a_reply_that_drips_ends_in_time(drip: str, live: bool) -> None:
    async def later() -> None:
        try:
            await drain(llm, live)
        finally:
            await llm.aclose()

    with dripping(*DRIPS[drip]) as url:
        llm = OpenAIChat("m", base_url=url, api_key="key", timeout=0.1, max_retries=0)
        engine = answering(llm, controller=ONE_ROUND)
        ask = lambda: list(engine.stream(QUESTION, candidates=CANDIDATES, live_final=live))  # noqa: E731
        ends_soon(ask, LLMConnectionError, "did not answer in time")
        ends_soon(lambda: asyncio.run(later()), LLMConnectionError, "did not answer in time")


@pytest.mark.parametrize("live", [False, True])
def test_a_call_of_any_model_ends_without_a_budget(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    class Drips(ScriptedLLM):
        def complete(self, *args: Any, **kwargs: Any) -> Completion:
            release.wait(30)
            raise AssertionError

        async def acomplete(self, *args: Any, **kwargs: Any) -> Completion:
            await asyncio.sleep(30)
            raise AssertionError

        def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
            while not release.wait(0.01):
                yield "x"

        async def astream(self, messages: Sequence[Message]) -> AsyncIterator[str | Completion]:
            while True:
                await asyncio.sleep(0.01)
                yield "x"

    monkeypatch.setattr("precise_rag.llm.budget.MOST_CALL_SECONDS", 0.2)
    engine = answering(Drips([]), controller=ONE_ROUND)
    ask = lambda: list(engine.stream(QUESTION, candidates=CANDIDATES, live_final=live))  # noqa: E731
    ends_soon(ask, LLMConnectionError, "did not answer in time")
    ends_soon(lambda: asyncio.run(drain(Drips([]), live)), LLMConnectionError, "did not answer in time")
    release.set()


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
    with client([says("ready"), says("one two three four", stall=30.0)], timeout=60.0) as llm:
        llm.complete(PROMPT)  # what is imported for the first call takes no time of the budget
        engine = answering(llm, controller=ONE_ROUND, budget=Budget(seconds=2.0))
        trace = Trace(QUESTION)
        items = engine.stream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True)
        assert [next(items), next(items)] == ["one ", "two "]
        with pytest.raises(BudgetExceeded, match="left behind"):
            next(items)
    (call,) = trace.calls
    assert call.error.startswith("BudgetExceeded")
    assert (call.text, call.output_tokens, call.usage_estimated) == ("one two ", 2, True)


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
    relevance = RelevanceFilter(
        load_llm(lambda prompt: str(release.wait(30.0))), batch_size=1, budget=Budget(seconds=0.2)
    )
    selection = relevance.filter(QUESTION, CANDIDATES)
    release.set()
    assert all("seconds over budget" in reason for reason in selection.reasons)
