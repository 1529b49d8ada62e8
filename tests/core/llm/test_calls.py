"""Waves of calls and the budget: it is exceeded by one reply at most."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.errors import BudgetExceeded
from precise_rag.llm import Budget
from precise_rag.llm.calls import aask, ask
from precise_rag.llm.session import Ask, CallOutcome, Session
from precise_rag.prompts import Prompt
from precise_rag.testing import ScriptedLLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import Price, PriceTable
from precise_rag.types import Completion, Message

PRICES = PriceTable({"m": Price(1.0, 4.0)})
"""Dollars for a million tokens."""


def model_of(replies: Sequence[int]) -> ScriptedLLM:
    """A model whose replies have these lengths, in tokens."""
    lengths = iter(replies)
    return ScriptedLLM(
        lambda messages: Completion("x", "m", estimate_prompt_tokens(messages), next(lengths)), name="m"
    )


def asked(model: ScriptedLLM, n: int, budget: Budget, *, is_async: bool, most: int = 4) -> list[CallOutcome]:
    session = Session.start("Who?", budget=budget, prices=PRICES)
    prompts = [Prompt("v", (Message("user", "word " * 50),)) for _ in range(n)]
    request = Ask(session=session, role="r", llm=model, prompts=prompts, max_concurrency=most)
    return asyncio.run(aask(request)) if is_async else ask(request)


def used(outcomes: Sequence[CallOutcome]) -> list[Completion]:
    return [outcome for outcome in outcomes if isinstance(outcome, Completion)]


@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=12),
    st.integers(60, 3000),
    st.sampled_from(["tokens", "cost"]),
    st.booleans(),
    st.integers(1, 5),
)
def test_a_budget_is_exceeded_by_one_reply_at_most(
    replies: list[int], limit: int, kind: str, is_async: bool, most: int
) -> None:
    budget = Budget(tokens=limit) if kind == "tokens" else Budget(cost=limit * 1e-6)
    paid = used(asked(model_of(replies), len(replies), budget, is_async=is_async, most=most))
    weight = 1 if kind == "tokens" else 4
    total = sum(reply.input_tokens + weight * reply.output_tokens for reply in paid)
    longest = max((weight * reply.output_tokens for reply in paid), default=0)
    assert total <= limit + longest


def test_a_budget_of_calls_alone_keeps_calls_at_the_same_time() -> None:
    outcomes = asked(model_of([900] * 6), 6, Budget(calls=5), is_async=False)
    assert [isinstance(outcome, Completion) for outcome in outcomes] == [True] * 5 + [False]


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (Budget(calls=1), "1 of 1 used, 1 more needed"),
        (Budget(tokens=110), "100 of 110 used, 20 more needed"),
        (Budget(cost=0.011), "0.01 of 0.011 used, 0.002 more needed"),
    ],
)
def test_a_budget_refuses_the_call_that_would_pass_it_and_allows_one_that_fits_exactly(budget, message):
    spending = budget.start()
    spending.check("m", 20, 0.002)
    spending.add(100, 0.01)
    with pytest.raises(BudgetExceeded, match=message):
        spending.check("m", 20, 0.002)
    Budget(calls=1, tokens=20, cost=0.5).start().check("m", 20, 0.5)
