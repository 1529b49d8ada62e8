"""Waves of calls and the budget: it is exceeded by one reply at most."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.errors import BudgetExceeded
from precise_rag.llm import Budget, OpenAIChat
from precise_rag.llm.calls import aask, ask
from precise_rag.llm.framework import LangChainLLM
from precise_rag.llm.session import Ask, CallOutcome, Session
from precise_rag.prompts import Prompt
from precise_rag.testing import ScriptedLLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import Price, PriceTable, Trace
from precise_rag.types import Candidate, Completion, Message

PRICES = PriceTable({"m": Price(1.0, 4.0)})
"""Dollars for a million tokens."""


class Model(ScriptedLLM):
    """Replies of given lengths, in tokens. max_reply_tokens: what it says of them."""

    def __init__(self, replies: Sequence[int], max_reply_tokens: Any = None) -> None:
        self.max_reply_tokens = max_reply_tokens
        lengths = iter(replies)
        super().__init__(
            lambda messages: Completion("x", "m", estimate_prompt_tokens(messages), next(lengths)), name="m"
        )


def asked(model: Model, n: int, budget: Budget, *, is_async: bool, most: int = 4) -> list[CallOutcome]:
    session = Session.open("Who?", budget=budget, prices=PRICES)
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
    st.booleans(),
    st.integers(1, 5),
)
def test_a_budget_is_exceeded_by_one_reply_at_most(
    replies: list[int], limit: int, kind: str, says_longest: bool, is_async: bool, most: int
) -> None:
    budget = Budget(tokens=limit) if kind == "tokens" else Budget(cost=limit * 1e-6)
    model = Model(replies, max(replies) if says_longest else None)
    paid = used(asked(model, len(replies), budget, is_async=is_async, most=most))
    weight = 1 if kind == "tokens" else 4
    total = sum(reply.input_tokens + weight * reply.output_tokens for reply in paid)
    longest = max((weight * reply.output_tokens for reply in paid), default=0)
    assert total <= limit + longest


@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_that_limits_its_replies_is_asked_at_the_same_time(is_async: bool) -> None:
    model = Model([100] * 4, 100)
    model.delay = 0.05
    n_running, most = 0, 0
    complete, acomplete = model.complete, model.acomplete

    def count(change: int) -> None:
        nonlocal n_running, most
        n_running += change
        most = max(most, n_running)

    def counted(*args: Any, **kwargs: Any) -> Completion:
        count(1)
        try:
            return complete(*args, **kwargs)
        finally:
            count(-1)

    async def acounted(*args: Any, **kwargs: Any) -> Completion:
        count(1)
        try:
            return await acomplete(*args, **kwargs)
        finally:
            count(-1)

    model.complete, model.acomplete = counted, acounted  # type: ignore[method-assign]
    prompt = estimate_prompt_tokens((Message("user", "word " * 50),))
    enough_for_three = Budget(tokens=4 * prompt + 2 * 100)
    outcomes = asked(model, 4, enough_for_three, is_async=is_async)
    assert most == 3
    assert [type(outcome) for outcome in outcomes] == [Completion] * 3 + [BudgetExceeded]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_relevance_filter_keeps_the_promise_of_its_budget(is_async: bool) -> None:
    model = Model([400] * 20)
    candidates = [Candidate(f"d{n}", 0, 40, "x" * 40, 1 - n / 50, "probability") for n in range(12)]
    relevance = RelevanceFilter(
        model, batch_size=1, budget=Budget(tokens=2_000), prices=PRICES, unscored="keep"
    )
    trace = Trace("Who?")
    if is_async:
        asyncio.run(relevance.afilter("Who?", candidates, trace=trace))
    else:
        relevance.filter("Who?", candidates, trace=trace)
    assert len(trace.calls) > 1
    assert sum(call.input_tokens + call.output_tokens for call in trace.calls) <= 2_400


def test_a_budget_of_calls_alone_keeps_calls_at_the_same_time() -> None:
    outcomes = asked(Model([900] * 6), 6, Budget(calls=5), is_async=False)
    assert [isinstance(outcome, Completion) for outcome in outcomes] == [True] * 5 + [False]


def test_clients_say_how_long_their_replies_are() -> None:
    assert OpenAIChat("m", api_key="k").max_reply_tokens is None
    assert OpenAIChat("m", api_key="k", max_tokens=70).max_reply_tokens == 70
    assert OpenAIChat("m", api_key="k", max_completion_tokens=80).max_reply_tokens == 80

    class Chat:
        max_tokens = 90

    assert LangChainLLM(Chat()).max_reply_tokens == 90
