"""Synchronous calls that end in time: they run in a thread that can be left behind."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any, TypeVar

from precise_rag._worker import Worker, call_ends_at
from precise_rag.errors import BudgetExceeded, LLMConnectionError
from precise_rag.llm.budget import Spending

T = TypeVar("T")


class Deadline:
    """Makes the synchronous calls of one request. Close it (`contextlib.closing`).

    spending: the seconds of its budget end the calls. Raises BudgetExceeded if none are left.
    most: seconds after which they end in any case.

    The calls run in a thread of their own, in a copy of the caller's context. One that takes longer is left
    behind: `OpenAIChat` sends nothing more; any other model may still finish it in the background.
    """

    def __init__(self, spending: Spending, most: float) -> None:
        spending.check_time()
        seconds = spending.limited(most)
        self._budget_seconds = spending.budget.seconds if seconds < most else None
        self._ends_at = time.monotonic() + seconds
        self._worker = Worker(self._ends_at)

    def close(self) -> None:
        """End the thread after the calls that were made."""
        self._worker.close()

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of `function`.

        Raises BudgetExceeded if the budget has no seconds left before it ends, and TimeoutError after `most`.
        """
        future = self._worker.submit(function)
        left = max(0.0, self._ends_at - time.monotonic())
        if wait([future], min(left, threading.TIMEOUT_MAX)).done:
            return future.result()
        if self._budget_seconds is None:
            raise TimeoutError("the call took too long and was left behind")
        raise BudgetExceeded(
            f"seconds over budget: all {self._budget_seconds:g} used; "
            "the call that was running was left behind"
        )


def end_with_call(request: Any) -> None:
    """End a request of httpx with the call that makes it: a hook for its clients.

    Raises LLMConnectionError if the call was left behind.
    """
    left = call_ends_at.get() - time.monotonic()
    if left <= 0:
        raise LLMConnectionError("the call was left behind, so nothing more is sent")
    timeouts = request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        name: left if seconds is None else min(left, seconds) for name, seconds in timeouts.items()
    }
