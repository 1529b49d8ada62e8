"""Waves of calls, the budget, which is exceeded by one reply at most, and the time of a call."""

import asyncio
import threading
import time
from contextlib import closing
from contextvars import ContextVar

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag._http import hooks
from precise_rag._worker import Worker
from precise_rag.errors import BudgetExceeded
from precise_rag.llm import Budget
from precise_rag.llm.budget import Deadline
from precise_rag.llm.calls import aask, ask
from precise_rag.llm.session import Ask, Session
from precise_rag.prompts import Prompt
from precise_rag.testing import ScriptedLLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import Price, PriceTable
from precise_rag.types import Completion, Message
from support.documents import read_cases

PRICES = PriceTable({"m": Price(1.0, 4.0)})
"""Dollars for a million tokens."""


@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=12),
    st.integers(60, 3000),
    st.sampled_from(["tokens", "cost"]),
    st.booleans(),
    st.integers(1, 5),
)
def test_a_budget_is_exceeded_by_one_reply_at_most(
    replies: list[int], limit: int, kind: str, is_async: bool, most: int
) -> None:
    budget = Budget(tokens=limit) if kind == "tokens" else Budget(cost=limit * 1e-6)
    lengths = iter(replies)
    llm = ScriptedLLM(lambda m: Completion("x", "m", estimate_prompt_tokens(m), next(lengths)), name="m")
    prompts = [Prompt("v", (Message("user", "word " * 50),)) for _ in replies]
    session = Session.start("Who?", budget=budget, prices=PRICES)
    request = Ask(session=session, role="r", llm=llm, prompts=prompts, max_concurrency=most)
    outcomes = asyncio.run(aask(request)) if is_async else ask(request)
    paid = [outcome for outcome in outcomes if isinstance(outcome, Completion)]
    weight = 1 if kind == "tokens" else 4
    total = sum(reply.input_tokens + weight * reply.output_tokens for reply in paid)
    longest = max((weight * reply.output_tokens for reply in paid), default=0)
    assert total <= limit + longest


@pytest.mark.parametrize(("limits", "message"), read_cases("judgements.json", "what a call would pass"))
def test_a_budget_refuses_the_call_that_would_pass_it_and_allows_one_that_fits_exactly(limits, message):
    spending = Budget(**limits).start()
    spending.check("m", 20, 0.002)
    spending.add(100, 0.01)
    with pytest.raises(BudgetExceeded, match=message):
        spending.check("m", 20, 0.002)
    Budget(calls=1, tokens=20, cost=0.5).start().check("m", 20, 0.5)


asked_for: ContextVar[str] = ContextVar("asked_for")


@pytest.mark.parametrize("budget", [Budget(), Budget(seconds=60)])
def test_calls_share_a_thread_and_the_callers_context(budget: Budget) -> None:
    asked_for.set("Ada")
    with closing(Deadline(budget.start(), 60.0)) as deadline:
        assert deadline.call(asked_for.get) == "Ada"
        threads = {deadline.call(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


@pytest.mark.parametrize(
    ("seconds", "most", "error"), [(0.05, 60.0, BudgetExceeded), (60.0, 0.05, TimeoutError)]
)
def test_a_call_that_takes_too_long_is_left_behind_and_what_one_raises_is_raised(
    seconds: float, most: float, error: type[Exception]
) -> None:
    def fails() -> None:
        raise TimeoutError("its own")

    release = threading.Event()
    own = pytest.raises(TimeoutError, match="its own")
    with closing(Deadline(Budget(seconds=60.0).start(), 60.0)) as deadline, own:
        deadline.call(fails)
    with closing(Deadline(Budget(seconds=seconds).start(), most)) as deadline:
        for _ in range(2):
            with pytest.raises(error, match=r"left behind|seconds over budget"):
                deadline.call(lambda: release.wait(30))
    release.set()


def test_a_request_ends_with_the_call_that_makes_it() -> None:
    def timeouts(ends_in: float) -> dict[str, float]:
        request = httpx.Request("POST", "http://host", extensions={"timeout": {"read": 60.0, "pool": None}})
        with closing(Worker(time.monotonic() + ends_in)) as worker:
            worker.call(lambda: hooks()["request"][0](request))
        found: dict[str, float] = request.extensions["timeout"]
        return found

    assert all(seconds <= 6.0 for seconds in timeouts(5.0).values())
    assert timeouts(90.0)["read"] == 60.0


def test_a_closed_worker_ends_its_thread_and_is_no_reason_to_wait_at_exit() -> None:
    worker = Worker()
    thread = worker.submit(threading.current_thread).result(5)
    assert thread.daemon
    worker.close()
    thread.join(5)
    assert not thread.is_alive()
