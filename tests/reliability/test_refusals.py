"""Replies that a model refuses, cuts off or breaks: what is left is used, and the rest named."""

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.errors import (
    ContentFilterError,
    ContextLengthError,
    InputError,
    LLMConnectionError,
    LLMError,
)
from precise_rag.feedback import FeedbackController
from precise_rag.llm import Budget
from precise_rag.llm.finish import cut_off, reported_cut_off
from precise_rag.rewriting import QueryRewriter
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Completion, Message
from support.chat_server import Reply, fails, says
from support.feedback import answering
from support.misbehaving import ACCEPTED, CANDIDATES, MANY, PROMPT, QUESTION, client, scores


@pytest.mark.parametrize("error", [LLMConnectionError("down"), ContextLengthError("long"), RuntimeError("x")])
def test_a_stream_that_breaks_leaves_its_call_in_the_trace(error: Exception) -> None:
    class Breaks(ScriptedLLM):
        def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
            yield "Ada "
            raise error

        async def astream(self, messages: Sequence[Message]) -> Any:
            yield "Ada "
            raise error

    async def drain(trace: Trace) -> None:
        async for _ in engine.astream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True):
            pass

    engine = answering(Breaks([]), controller=FeedbackController(max_rounds=1))
    traces = Trace(QUESTION), Trace(QUESTION)
    with pytest.raises(LLMError) as raised:
        list(engine.stream(QUESTION, candidates=CANDIDATES, trace=traces[0], live_final=True))
    with pytest.raises(type(raised.value), match=str(raised.value)):
        asyncio.run(drain(traces[1]))
    for trace in traces:
        (call,) = trace.calls
        assert call.error.startswith(type(raised.value).__name__)
        assert call.text == "Ada "


def test_a_reader_who_leaves_leaves_the_call_in_the_trace() -> None:
    trace = Trace(QUESTION)
    engine = answering(ScriptedLLM(["one two three"]), controller=FeedbackController(max_rounds=1))
    items = engine.stream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True)
    next(items)
    items.close()  # type: ignore[attr-defined]
    (call,) = trace.calls
    assert "given up" in call.error
    assert call.text == "one "


@pytest.mark.parametrize("reply", [AssertionError("a mistake"), InputError("no such option"), "text"])
def test_synchronous_and_asynchronous_calls_raise_the_same(reply: Any) -> None:
    class Odd:
        name = "odd"

        def complete(self, messages: Sequence[Message], *, schema: Any = None) -> Any:
            if isinstance(reply, Exception):
                raise reply
            return reply

        async def acomplete(self, messages: Sequence[Message], *, schema: Any = None) -> Any:
            return self.complete(messages)

    loop, relevance, rewriter = (
        answering(Odd()),
        RelevanceFilter(Odd(), batch_size=1),
        QueryRewriter(Odd()),
    )
    calls: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (
            lambda: loop.answer(QUESTION, candidates=CANDIDATES),
            lambda: loop.aanswer(QUESTION, candidates=CANDIDATES),
        ),
        (lambda: relevance.filter(QUESTION, CANDIDATES), lambda: relevance.afilter(QUESTION, CANDIDATES)),
        (lambda: rewriter.queries(QUESTION), lambda: rewriter.aqueries(QUESTION)),
    ]

    def outcome(run: Callable[[], Any]) -> tuple[type, str]:
        try:
            result = run()
        except Exception as error:
            return type(error), str(error)
        return type(result), str(getattr(result, "reasons", result))

    async def awaited(call: Callable[[], Any]) -> Any:
        return await call()

    for sync, later in calls:
        assert outcome(sync) == outcome(partial(asyncio.run, awaited(later)))


@pytest.mark.parametrize("error", [ContextLengthError("too long"), ContentFilterError("filtered")])
@pytest.mark.parametrize("culprit", [0, 4, 9])
def test_one_refused_chunk_does_not_cost_its_batch(error: Exception, culprit: int) -> None:
    llm = ScriptedLLM(lambda m: scores(m, lambda text: error if f"Chunk {culprit:02}" in text else None))
    selection = RelevanceFilter(llm).filter(QUESTION, MANY)
    scored = ["relevance" in decision.candidate.scores for decision in selection.decisions]
    assert scored == [n != culprit for n in range(10)]
    assert str(error) in selection.reasons[culprit]
    assert len(llm.calls) <= 1 + 2 * math.ceil(math.log2(10))


def test_refusing_every_chunk_costs_fewer_than_two_calls_each_and_no_more_than_the_budget() -> None:
    llm = ScriptedLLM(lambda m: ContextLengthError("too long"))
    RelevanceFilter(llm).filter(QUESTION, MANY)
    assert len(llm.calls) == 19
    llm = ScriptedLLM(lambda m: ContextLengthError("too long"))
    RelevanceFilter(llm, budget=Budget(calls=5)).filter(QUESTION, MANY)
    assert len(llm.calls) == 5


def test_a_batch_whose_reply_is_cut_off_is_halved() -> None:
    def short(messages: Sequence[Message]) -> Completion:
        reply = scores(messages, lambda text: None)
        assert isinstance(reply, str)
        is_cut = len(reply) > 250
        return Completion(reply[:250], cut_off="length" if is_cut else "")

    selection = RelevanceFilter(ScriptedLLM(short)).filter(QUESTION, MANY)
    assert all("relevance" in decision.candidate.scores for decision in selection.decisions)


def test_a_server_names_its_content_filter() -> None:
    for reply in (
        fails(400, "The response was filtered by our content management policy", code="content_filter"),
        fails(400, "Your input was flagged by moderation"),
        says("", finish_reason="content_filter"),
    ):
        with client([reply]) as llm, pytest.raises(ContentFilterError):
            llm.complete(PROMPT)


@pytest.mark.parametrize("refusal", [ContextLengthError("too long"), ContentFilterError("filtered")])
def test_a_piece_that_is_refused_alone_is_left_out_and_named(refusal: LLMError) -> None:
    big = Candidate("big", 0, 9, "word " * 5_000, 1.0, "probability")

    llm = ScriptedLLM(lambda m: refusal if "word word" in m[1].content else "Ada.")
    engine = answering(llm, ScriptedLLM([ACCEPTED]), k=4)
    answer = engine.answer(QUESTION, candidates=[big, *CANDIDATES])
    assert answer.text == "Ada."
    assert [c.doc_id for c in answer.selection.kept] == ["d0", "d1", "d2"]
    assert "left out 1 chunk that the model does not accept" in answer.note
    assert answer.selection.reasons[0].startswith("left out: ")
    assert len(llm.calls) == 4  # 4, 2 and 1 chunks, then the other 3


@pytest.mark.parametrize(
    ("reason", "said"), [("length", "length limit"), ("content_filter", "content filter")]
)
@pytest.mark.parametrize("live", [False, True])
def test_a_draft_that_is_cut_off_is_noted(reason: str, said: str, live: bool) -> None:
    def script(request: dict[str, Any]) -> Reply:
        is_judge = "adjustment" in request["messages"][0]["content"]
        return says(ACCEPTED) if is_judge else says("Keeper 3 is", finish_reason=reason)

    with client(script) as llm:
        engine = answering(llm, controller=FeedbackController(max_rounds=1))
        *_, answer = engine.stream(QUESTION, candidates=CANDIDATES, live_final=live)
    assert not isinstance(answer, str)
    assert f"the draft of round 1 is cut off (by the {said})" in answer.note
    assert answer.trace is not None
    assert json.loads(answer.trace.to_json())["calls"][0]["cut_off"] == reason
    assert f"cut off by the {said}" in answer.trace.to_html()


def test_a_judgement_that_is_cut_off_is_not_believed() -> None:
    cut = Completion("Evaluation Score: 1", cut_off="length")
    answer = answering(ScriptedLLM(["Ada."]), ScriptedLLM([cut, ACCEPTED])).answer(
        QUESTION, candidates=CANDIDATES
    )
    assert answer.note == "accepted with 9 of 10"
    answer = answering(ScriptedLLM(["Ada."]), ScriptedLLM([cut, cut])).answer(QUESTION, candidates=CANDIDATES)
    assert answer.note == "the judgement is cut off (by the length limit)"


def test_a_score_or_query_that_is_cut_off_is_not_believed() -> None:
    llm = ScriptedLLM(lambda m: Completion("0", cut_off="length"))
    selection = RelevanceFilter(llm, mode="single").filter(QUESTION, CANDIDATES[:1])
    assert selection.reasons[0].startswith("unscored")
    rewriter = QueryRewriter(ScriptedLLM([Completion("who kept the", cut_off="length")]))
    assert rewriter.queries(QUESTION) == (QUESTION,)


def test_reasons_of_other_servers_are_known() -> None:
    assert [cut_off(r) for r in ("MAX_TOKENS", "SAFETY", "end_turn", None, 3)] == [
        "length",
        "content_filter",
        "",
        "",
        "",
    ]
    assert reported_cut_off(None, {"finish_reason": "stop"}, {"stop_reason": "max_tokens"}) == "length"
