"""Synchronous calls that end in time: they run in a thread that can be left behind."""

import math
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from precise_rag.errors import BudgetExceeded
from precise_rag.limited_http import call_ends_at
from precise_rag.llm.budget import Spending

T = TypeVar("T")

_GRACE = 0.05
"""Seconds after which the client in a thread that was left behind ends its request."""


class Worker:
    """Runs functions one after another in a daemon thread, in a copy of the caller's context.

    The interpreter does not wait for the thread when it exits.
    ends_at: when the requests of our own clients end, on the clock of `time.monotonic`; default: never.
    """

    def __init__(self, ends_at: float = math.inf) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        context = copy_context()
        context.run(call_ends_at.set, min(ends_at, call_ends_at.get()))
        Thread(target=context.run, args=(self._work,), name="precise-rag call", daemon=True).start()

    def submit(self, function: Callable[[], T]) -> "Future[T]":
        """Return the future result of `function`."""
        future: Future[T] = Future()
        self._jobs.put((function, future))
        return future

    def close(self) -> None:
        """End the thread after the functions that were submitted."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = function()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            del job, function, future


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
