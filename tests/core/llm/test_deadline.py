import threading
import time
from contextlib import closing
from contextvars import ContextVar

import httpx
import pytest

from precise_rag._worker import Worker
from precise_rag.errors import BudgetExceeded, LLMConnectionError
from precise_rag.llm import Budget
from precise_rag.llm.deadline import Deadline, end_with_call

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
    with closing(Deadline(Budget(seconds=seconds).start(), most)) as deadline:
        with pytest.raises(TimeoutError, match="its own"):
            deadline.call(fails)
        for _ in range(2):
            with pytest.raises(error, match=r"left behind|seconds over budget"):
                deadline.call(lambda: release.wait(30))
    release.set()


def test_a_request_ends_with_the_call_that_makes_it() -> None:
    def timeouts(ends_in: float) -> dict[str, float]:
        request = httpx.Request("POST", "http://host", extensions={"timeout": {"read": 60.0, "pool": None}})
        worker = Worker(time.monotonic() + ends_in)
        done = worker.submit(lambda: end_with_call(request))
        worker.close()
        done.result(5)
        found: dict[str, float] = request.extensions["timeout"]
        return found

    assert all(seconds <= 5.0 for seconds in timeouts(5.0).values())
    assert timeouts(90.0)["read"] == 60.0
    with pytest.raises(LLMConnectionError, match="nothing more is sent"):
        timeouts(-1.0)


def test_a_closed_worker_ends_its_thread_and_is_no_reason_to_wait_at_exit() -> None:
    worker = Worker()
    thread = worker.submit(threading.current_thread).result(5)
    assert thread.daemon
    worker.close()
    thread.join(5)
    assert not thread.is_alive()
