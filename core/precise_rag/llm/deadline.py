"""Synchronous calls that end in time: they run in a thread that can be left behind."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from types import TracebackType
from typing import Any, Self, TypeVar

from precise_rag._worker import Worker, call_ends_at
from precise_rag.errors import BudgetExceeded, LLMConnectionError
from precise_rag.llm.budget import Spending

T = TypeVar("T")


class Deadline:
    """Makes the synchronous calls of one request. Close it, or use it in a `with` statement.

    spending: the seconds of its budget end the calls.
    most: seconds after which they end in any case.

    The calls run in a thread of their own, in a copy of the caller's context. One that takes longer is left
    behind: `OpenAIChat` sends nothing more; any other model may still finish it in the background.
    """

    def __init__(self, spending: Spending, most: float) -> None:
        self._spending = spending
        seconds = spending.limited(most)
        self._ends_with_budget = seconds < most
        self._ends_at = time.monotonic() + seconds
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of `function`.

        Raises BudgetExceeded if the budget has no seconds left before it ends, and TimeoutError after `most`.
        """
        self._spending.check_time()
        if self._worker is None:
            self._worker = Worker(self._ends_at)
        future = self._worker.submit(function)
        left = max(0.0, self._ends_at - time.monotonic())
        if wait([future], min(left, threading.TIMEOUT_MAX)).done:
            return future.result()
        if self._ends_with_budget:
            raise BudgetExceeded(
                f"seconds over budget: all {self._spending.budget.seconds:g} used; "
                "the call that was running was left behind"
            )
        raise TimeoutError("the call took too long and was left behind")


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
