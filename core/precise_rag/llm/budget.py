"""Limits on what one question may use, checked before every call, and calls that end in time."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from precise_rag._worker import CallTimeoutError, Worker
from precise_rag.checks import check_number
from precise_rag.errors import BudgetExceeded, InputError
from precise_rag.protocols import LLM

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits for one question. None, the default of each, means no limit.

    calls: language model calls.
    tokens: input and output tokens together.
    seconds: time since the start. When it is over, no call is begun and a running call is given up: an
        asynchronous one is cancelled, a synchronous one is left behind in a thread of its own (see
        `Deadline`). Each call also ends after ten minutes, or as the model says (`max_call_seconds`).
    cost: dollars.

    The length of a reply is not known in advance, so tokens and cost may be exceeded by one reply, never by
    more: with a limit on either, calls run one at a time. The tokens of a prompt are estimated before it is
    sent, and counted as the server reports them afterwards.
    """

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "seconds", "cost"):
            limit, whole = getattr(self, name), name in ("calls", "tokens")
            check_number(f"budget: {name}", limit, above_zero=True, whole=whole, none="no limit")

    def start(self) -> "Spending":
        """Start counting against this budget; its seconds begin now."""
        return Spending(self)


MOST_CALL_SECONDS = 600.0
"""Most seconds of a call of a model without `max_call_seconds`."""


def most_call_seconds(llm: LLM) -> float:
    """Return the most seconds of a call of a model."""
    return getattr(llm, "max_call_seconds", MOST_CALL_SECONDS)


@dataclass(slots=True, eq=False)
class Spending:
    """The calls, tokens, dollars and seconds that one question has used of its budget."""

    budget: Budget
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float:
        """Seconds that are left, at least 0; infinite if the budget does not limit them."""
        if self.budget.seconds is None:
            return math.inf
        return max(0.0, self.budget.seconds - (time.monotonic() - self._started))

    def check(self, model: str, input_tokens: int, input_cost: float | None, *, calls: int = 1) -> None:
        """Check that the budget has room for a call.

        model: name of the model, for the message.
        input_cost: dollars for the prompt; None if the model has no price.
        calls: how many calls must still be allowed; 2 if this call is useless without another.
        Raises BudgetExceeded if a limit does not allow it, InputError if the budget limits the cost and the
        model has no price.
        """
        budget = self.budget
        if budget.cost is not None and input_cost is None:
            raise InputError(
                f"the budget limits the cost to ${budget.cost:g}, but the price table has no {model!r}; "
                "add its price, or limit calls or tokens instead"
            )
        self.check_time()
        for what, used, more, limit in (
            ("calls", self.calls, calls, budget.calls),
            ("tokens", self.tokens, input_tokens, budget.tokens),
            ("dollars", self.cost, input_cost or 0.0, budget.cost),
        ):
            if limit is not None and used + more > limit:
                raise BudgetExceeded(
                    f"{what} over budget: {used:.9g} of {limit:.9g} used, {more:.9g} more needed"
                )

    def check_time(self) -> None:
        """Raise BudgetExceeded if no seconds are left."""
        if self.seconds_left == 0.0:
            raise BudgetExceeded(f"seconds over budget: all {self.budget.seconds:g} used")

    @asynccontextmanager
    async def time_limit(self, most: float) -> AsyncIterator[None]:
        """Cancel the block when no seconds are left. Raises BudgetExceeded then.

        most: seconds after which the block is cancelled in any case. Raises TimeoutError then.
        """
        try:
            async with asyncio.timeout(min(most, self.seconds_left)):
                yield
        except TimeoutError:
            self.check_time()
            raise

    def add(self, tokens: int, cost: float | None) -> None:
        """Count one call, failed or not. cost: dollars; None, if unknown, counts as 0."""
        self.calls += 1
        self.tokens += tokens
        self.cost += cost or 0.0


class Deadline(Worker):
    """Makes the synchronous calls of one request, which end in time. Close it (`contextlib.closing`).

    spending: the seconds of its budget end the calls. Raises BudgetExceeded if none are left.
    most: seconds after which they end in any case.

    The calls run in a thread of their own, in a copy of the caller's context. One that takes longer is left
    behind: `OpenAIChat` sends and reads nothing more; any other model may still finish it in the background.
    """

    def __init__(self, spending: Spending, most: float) -> None:
        spending.check_time()
        seconds = min(most, spending.seconds_left)
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
        used = f"all {self._budget_seconds:g} used"
        raise BudgetExceeded(f"seconds over budget: {used}; the call that was running was left behind")
