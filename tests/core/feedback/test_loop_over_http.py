"""The loop over HTTP: every failure of the server ends in an answer with a note, or in one clear error."""

import asyncio
from contextlib import aclosing, contextmanager

import pytest

from precise_rag.errors import (
    BudgetExceeded,
)
from precise_rag.feedback import FeedbackController
from precise_rag.llm import Budget, OpenAIChat
from precise_rag.types import Candidate
from support.chat_server import ChatServer, says, wait_until
from support.feedback import answering

QUESTION = "Where is Paris?"
CANDIDATES = [Candidate("d", n, n + 1, f"Text {n}.", 0.5, "probability") for n in range(8)]
ACCEPTED = says('{"reason": "so", "score": 9, "adjustment": 0}')
MORE = says('{"reason": "so", "score": 5, "adjustment": 1}')
DRAFT = says("Paris is in France [1].")


def is_judge(request):
    return "adjustment" in request["messages"][0]["content"]


@contextmanager
def loop(script, *, timeout=5.0, max_retries=0, **options):
    with ChatServer(script) as server:
        llm = OpenAIChat("m", base_url=server.url, timeout=timeout, max_retries=max_retries)
        options = {"k": 4, **options}
        try:
            yield answering(llm, **options), server
        finally:
            llm.close()


def test_a_good_server_gives_an_accepted_answer_and_its_usage():
    with loop([DRAFT, MORE, DRAFT, ACCEPTED]) as (engine, server):
        answer = engine.answer(QUESTION, candidates=CANDIDATES)
    assert (answer.text, answer.note) == ("Paris is in France [1].", "accepted with 9 of 10")
    assert (answer.trace.input_tokens, answer.trace.output_tokens) == (44, 28)
    assert [is_judge(request) for request in server.requests] == [False, True, False, True]
    assert ["response_format" in request for request in server.requests] == [False, True, False, True]


async def test_a_live_stream_over_http_is_shown_as_it_comes_and_can_be_left():
    options = {"controller": FeedbackController(max_rounds=1)}
    with loop([DRAFT, ACCEPTED], **options) as (engine, server):
        *pieces, answer = engine.stream(QUESTION, candidates=CANDIDATES, live_final=True)
        assert pieces == ["Paris ", "is ", "in ", "France ", "[1]."]
        assert answer.trace.calls[0].input_tokens == 11
        assert server.requests[0]["stream"] is True
    with loop([says("word " * 2000)], **options) as (engine, server):
        async with aclosing(engine.astream(QUESTION, candidates=CANDIDATES, live_final=True)) as items:
            async for _ in items:
                break
        assert await asyncio.to_thread(wait_until, lambda: server.open_requests == 0)
        await engine.llm.aclose()


async def test_a_time_budget_cuts_a_stalled_call_and_leaves_nothing_running():
    with loop([DRAFT, says("late", stall=30.0)], timeout=60, budget=Budget(seconds=2.0)) as (engine, _):
        answer = await engine.aanswer(QUESTION, candidates=CANDIDATES)
        assert answer.note == "the answer is not judged: seconds over budget: all 2 used"
        await engine.llm.aclose()
    with loop([says("late", stall=30.0)], timeout=60, budget=Budget(seconds=0.2)) as (engine, _):
        with pytest.raises(BudgetExceeded):
            await engine.aanswer(QUESTION, candidates=CANDIDATES)
        await engine.llm.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}
