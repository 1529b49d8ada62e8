import threading
from contextvars import ContextVar

import pytest

from precise_rag._worker import Worker
from precise_rag.errors import BudgetExceeded
from precise_rag.llm import Budget
from precise_rag.llm.deadline import Deadline

asked_for: ContextVar[str] = ContextVar("asked_for")


def test_without_seconds_a_call_runs_on_the_callers_thread() -> None:
    with Deadline(Budget().start()) as deadline:
        assert deadline.call(threading.get_ident) == threading.get_ident()


def test_with_seconds_calls_share_a_thread_and_the_callers_context() -> None:
    asked_for.set("Ada")
    with Deadline(Budget(seconds=60).start()) as deadline:
        assert deadline.call(asked_for.get) == "Ada"
        threads = {deadline.call(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_what_a_call_raises_is_raised_a_timeout_of_its_own_too() -> None:
    def fails() -> None:
        raise TimeoutError("its own")

    with Deadline(Budget(seconds=60).start()) as deadline, pytest.raises(TimeoutError, match="its own"):
        deadline.call(fails)


def test_a_call_that_outlasts_the_budget_is_left_behind() -> None:
    release = threading.Event()
    with Deadline(Budget(seconds=0.05).start()) as deadline:
        with pytest.raises(BudgetExceeded, match="left behind"):
            deadline.call(lambda: release.wait(30))
        with pytest.raises(BudgetExceeded, match="seconds over budget"):
            deadline.call(lambda: None)
    release.set()


def test_a_closed_worker_ends_its_thread_and_is_no_reason_to_wait_at_exit() -> None:
    worker = Worker()
    thread = worker.submit(threading.current_thread).result(5)
    assert thread.daemon
    worker.close()
    thread.join(5)
    assert not thread.is_alive()
