"""Synchronous calls that end in time: they run in a thread that can be left behind."""

import time
from collections.abc import Callable
from concurrent.futures import wait
from types import TracebackType
from typing import Self, TypeVar

from precise_rag._worker import Worker
from precise_rag.errors import BudgetExceeded
from precise_rag.llm.budget import Spending

T = TypeVar("T")

_GRACE = 0.05
"""Seconds after which the client in a thread that was left behind ends its request."""


class Deadline:
    """Makes synchronous calls within the seconds of a budget. Close it, or use it in a `with` statement.

    Without a limit of seconds a call runs on the caller's thread. With one, calls run in a thread of
    their own. A call that outlasts the budget is left behind: our own clients end it at once and send
    nothing more; any other model may still finish it in the background.
    """

    def __init__(self, spending: Spending) -> None:
        self._spending = spending
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
        """Return the result of `function`. Raises BudgetExceeded if no seconds are left before it ends."""
        left = self._spending.seconds_left
        if left is None:
            return function()
        self._spending.check_time()
        if self._worker is None:
            self._worker = Worker(time.monotonic() + left + _GRACE)
        future = self._worker.submit(function)
        if wait([future], left).done:
            return future.result()
        raise BudgetExceeded(
            f"seconds over budget: all {self._spending.budget.seconds:g} used; "
            "the call that was running was left behind"
        )
