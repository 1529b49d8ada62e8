"""Models and servers that take too long: a call ends in time, and what goes on is left behind."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from precise_rag._worker import Worker
from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.errors import BudgetExceeded, LLMConnectionError
from precise_rag.feedback import FeedbackController
from precise_rag.llm import Budget, load_llm
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Completion
from support.chat_server import Reply, fails, says
from support.feedback import answering
from support.misbehaving import CANDIDATES, PROMPT, QUESTION, client

ONE_ROUND = FeedbackController(max_rounds=1)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set when the test has ended: what a model may wait for."""
    event = threading.Event()
    yield event
    event.set()


def ends_soon(task: Callable[[], Any], error: type[Exception], match: str) -> None:
    """Fails, and does not hang, if the task has not raised the error after many times its time limit."""
    worker = Worker()
    outcome = worker.submit(task)
    worker.close()
    with pytest.raises(error, match=match):
        outcome.result(30)


def never_answers_in_time(llm: Any, live: bool) -> None:
    """Checks a stream of answers and an asynchronous one."""
    engine = answering(llm, controller=ONE_ROUND)

    async def drain() -> None:
        async for _ in engine.astream(QUESTION, candidates=CANDIDATES, live_final=live):
            pass

    ask = lambda: list(engine.stream(QUESTION, candidates=CANDIDATES, live_final=live))  # noqa: E731
    for task in (ask, lambda: asyncio.run(drain())):
        ends_soon(task, LLMConnectionError, "did not answer in time")


@pytest.mark.parametrize(
    "reply", [says("late", stall=60.0), fails(429, retry_after="60"), Reply(endless=0.02)]
)
def test_a_synchronous_call_ends_with_the_budget(reply: Reply) -> None:
    with client([reply], timeout=60.0, max_retries=2) as llm:
        engine = answering(llm, budget=Budget(seconds=0.3))
        left = r"all 0\.3 used; the call that was running was left behind"
        ends_soon(lambda: engine.answer(QUESTION, candidates=CANDIDATES), BudgetExceeded, left)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("live", [False, True])
def test_a_reply_that_drips_ends_in_time(live: bool) -> None:
    with client([Reply(endless=0.05)], timeout=0.1) as llm:
        never_answers_in_time(llm, live)


@pytest.mark.parametrize("live", [False, True])
def test_a_call_of_any_model_ends_without_a_budget(
    live: bool, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Drips(ScriptedLLM):
        def complete(self, *args: Any, **kwargs: Any) -> Completion:
            release.wait(30)
            raise AssertionError

        async def acomplete(self, *args: Any, **kwargs: Any) -> Completion:
            await asyncio.sleep(30)
            raise AssertionError

        def stream(self, messages: Any) -> Iterator[str]:
            while not release.wait(0.01):
                yield "x"

        async def astream(self, messages: Any) -> AsyncIterator[str]:
            while True:
                await asyncio.sleep(0.01)
                yield "x"

    monkeypatch.setattr("precise_rag.llm.budget.MOST_CALL_SECONDS", 0.2)
    never_answers_in_time(Drips([]), live)


def test_nothing_waits_for_a_model_that_was_left_behind_and_a_draft_is_kept(
    release: threading.Event,
) -> None:
    slow, budget = load_llm(lambda prompt: str(release.wait(30.0))), Budget(seconds=0.2)
    with pytest.raises(BudgetExceeded):
        asyncio.run(answering(slow, budget=budget).aanswer(QUESTION, candidates=CANDIDATES))
    selection = RelevanceFilter(slow, batch_size=1, budget=budget).filter(QUESTION, CANDIDATES)
    assert all("seconds over budget" in reason for reason in selection.reasons)
    engine = answering(ScriptedLLM(["Ada kept it."]), slow, budget=budget)
    answer = engine.answer(QUESTION, candidates=CANDIDATES)
    assert answer.text == "Ada kept it."
    assert answer.note.startswith("the answer is not judged: seconds over budget: all 0.2 used")
    assert not release.is_set()


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
