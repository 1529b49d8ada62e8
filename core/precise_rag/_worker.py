"""A thread for calls that may be left behind, and when those calls end."""

import math
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import closing
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from threading import TIMEOUT_MAX, Thread
from typing import Any, TypeVar

T = TypeVar("T")
call_ends_at: ContextVar[float] = ContextVar("call_ends_at", default=math.inf)
"""When the calls of this context end, on the clock of `time.monotonic`."""


class CallTimeoutError(TimeoutError):
    """A call took too long and was left behind."""


def within(seconds: float, function: Callable[[], T]) -> T:
    """Return the result of `function`. Raises CallTimeoutError if it takes longer: it is left behind."""
    with closing(Worker(time.monotonic() + seconds)) as worker:
        return worker.call(function)


class Worker:
    """Runs functions one after another in a daemon thread, in a copy of the caller's context.

    The interpreter does not wait for the thread when it exits.
    ends_at: when the requests of our own clients end, on the clock of `time.monotonic`; default: never.
    """

    def __init__(self, ends_at: float = math.inf) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._ends_at = min(ends_at, call_ends_at.get())
        context = copy_context()
        context.run(call_ends_at.set, self._ends_at + 1)  # the caller gives up first, and says why
        Thread(target=context.run, args=(self._work,), name="precise-rag call", daemon=True).start()

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of `function`. Raises CallTimeoutError if it does not end before `ends_at`."""
        future = self.submit(function)
        left = max(0.0, self._ends_at - time.monotonic())
        if wait([future], min(left, TIMEOUT_MAX)).done:
            return future.result()
        raise CallTimeoutError("the call took too long and was left behind")

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
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
            del job, function, future
