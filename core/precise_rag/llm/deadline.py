"""Synchronous calls that end in time: they run in a thread that can be left behind."""

import time
from collections.abc import Callable
from typing import TypeVar

from precise_rag._worker import CallTimeoutError, Worker
from precise_rag.errors import BudgetExceeded
from precise_rag.llm.budget import Spending

T = TypeVar("T")


class Deadline(Worker):
    """Makes the synchronous calls of one request. Close it (`contextlib.closing`).

    spending: the seconds of its budget end the calls. Raises BudgetExceeded if none are left.
    most: seconds after which they end in any case.

    The calls run in a thread of their own, in a copy of the caller's context. One that takes longer is left
    behind: `OpenAIChat` sends and reads nothing more; any other model may still finish it in the background.
    """

    def __init__(self, spending: Spending, most: float) -> None:
        spending.check_time()
        seconds = spending.limited(most)
        self._budget_seconds = spending.budget.seconds if seconds < most else None
        super().__init__(time.monotonic() + seconds)

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of `function`.

        Raises BudgetExceeded if the budget has no seconds left before it ends, and CallTimeoutError after
        `most`.
        """
        try:
            return super().call(function)
        except CallTimeoutError:
            if self._budget_seconds is None:
                raise
        raise BudgetExceeded(
            f"seconds over budget: all {self._budget_seconds:g} used; "
            "the call that was running was left behind"
        )
