"""A limit on what one question may use, checked before every call."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from precise_rag.errors import BudgetExceeded, InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits for one question; None is no limit.

    calls: language model calls. tokens: input and output together. seconds: from the start; an
    asynchronous call is cut off when they are over, a synchronous one only not begun. cost: dollars.
    A call's output cannot be known before it, so tokens and cost may be passed by the length of
    one reply, and never by more.
    """

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "seconds", "cost"):
            limit = getattr(self, name)
            if limit is not None and limit <= 0:
                raise InputError(f"budget: {name} is {limit}; it must be positive, or None for no limit")

    def start(self) -> "Spending":
        """A count against this budget, beginning now."""
        return Spending(self)


class Spending:
    """What one question has used of its budget so far."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.calls = 0
        self.tokens = 0
        self.cost = 0.0
        self._started = time.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the budget is over, never negative, or None for no limit."""
        if self.budget.seconds is None:
            return None
        return max(0.0, self.budget.seconds - (time.monotonic() - self._started))

    def check(self, model: str, input_tokens: int, input_cost: float | None, *, calls: int = 1) -> None:
        """Raises BudgetExceeded if a call with this input would pass the budget.

        calls: how many must still be free, where one is of no use without the next.
        Raises InputError if the budget limits the cost and the model has no price.
        """
        budget = self.budget
        if budget.cost is not None and input_cost is None:
            raise InputError(
                f"the budget limits the cost to ${budget.cost:g}, but the price table has no {model!r}; "
                "add its price, or limit calls or tokens instead"
            )
        if budget.calls is not None and self.calls + calls > budget.calls:
            raise BudgetExceeded(f"{self.calls} calls of {budget.calls} are used and {calls} more are needed")
        if budget.tokens is not None and self.tokens + input_tokens > budget.tokens:
            raise BudgetExceeded(
                f"{self.tokens} tokens are used and the next prompt has about {input_tokens}; "
                f"the budget is {budget.tokens}"
            )
        self.check_time()
        if budget.cost is not None and input_cost is not None and self.cost + input_cost > budget.cost:
            raise BudgetExceeded(
                f"${self.cost:.6f} is spent and the next prompt costs about ${input_cost:.6f}; "
                f"the budget is ${budget.cost:g}"
            )

    def check_time(self) -> None:
        """Raises BudgetExceeded if the seconds are over."""
        if self.seconds_left == 0.0:
            raise BudgetExceeded(f"the budget of {self.budget.seconds:g} seconds is used")

    @asynccontextmanager
    async def time_limit(self) -> AsyncIterator[None]:
        """Cancels what runs inside, and raises BudgetExceeded, when the seconds are over."""
        try:
            async with asyncio.timeout(self.seconds_left):
                yield
        except TimeoutError:
            self.check_time()
            raise

    def add(self, tokens: int, cost: float | None) -> None:
        """Count one call. A failed one counts too, with the tokens that are known."""
        self.calls += 1
        self.tokens += tokens
        self.cost += cost or 0.0
