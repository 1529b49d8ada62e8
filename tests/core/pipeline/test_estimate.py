"""An estimate holds whatever a model says: properties over random pipelines and replies."""

import json
import random
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from precise_rag import (
    Budget,
    Document,
    FeedbackController,
    GradientSelector,
    PreciseRAG,
    QueryRewriter,
    RelevanceFilter,
)
from precise_rag.answer import Answer
from precise_rag.errors import ContentFilterError, ContextLengthError, LLMError, LLMServerError
from precise_rag.index import SentenceContextIndex
from precise_rag.pipeline import Estimate
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.trace import Bill, Price, PriceTable, Trace
from precise_rag.types import Completion, Message

QUESTION = "Who repairs the roof of the school?"
TOPICS = ("school", "harbour", "bakery", "clock")
DOCUMENTS = [
    Document(
        topic,
        "\n\n".join(
            f"The {topic} has {n} rooms. In summer number {n} repairs its roof. Nobody paints the door {n}."
            for n in range(3)
        ),
        {"title": topic.title()} if topic < "d" else {},
    )
    for topic in TOPICS
]
PRICES = PriceTable({"m": Price(1.0, 3.0)})
QUICK = settings(
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
FAILURES = (ContextLengthError, ContentFilterError, LLMServerError)


def readable(messages: Sequence[Message], chance: random.Random) -> str:
    """A reply of a model that never fails."""
    system, user = (message.content for message in messages)
    return _sound(system, user, chance, all_scores=True)


def reply(messages: Sequence[Message], chance: random.Random) -> str | Completion | Exception:
    """A reply of a model that often fails, says something unreadable, or breaks off."""
    system, user = (message.content for message in messages)
    fate = chance.random()
    if fate < 0.12:
        return chance.choice(FAILURES)("m: no")
    text = _sound(system, user, chance) if fate < 0.75 else "well\nwell"
    if fate > 0.85:
        counts = estimate_prompt_tokens(messages), estimate_tokens(text)
        return Completion(text, "m", *counts, cut_off="length")
    return text


def _sound(system: str, user: str, chance: random.Random, *, all_scores: bool = False) -> str:
    if "rewrite a question" in system or "shown a conversation" in system:
        return "school roof " + "repair " * chance.randrange(20)
    if '{"scores"' in system:
        ids = re.findall(r"^\w{16} chunk (\S+)$", user, re.M)
        chosen = ids if all_scores or chance.random() < 0.6 else ids[: chance.randrange(len(ids) + 1)]
        parts = ("base", "reflection", "critic")
        return json.dumps({"scores": [{"id": key} | {p: chance.random() for p in parts} for key in chosen]})
    if '{"score": 0.5}' in system:
        return json.dumps({"score": chance.choice([chance.random(), 1.23457e-05, 1])})
    if "adjustment" in system.lower():
        return json.dumps({"score": chance.randrange(1, 11), "adjustment": chance.choice([-1, 0, 1])})
    return "The master " + "does [1] [7] " * chance.randrange(1, 20)


@cache
def index_of(preset: str) -> Any:
    llm = ScriptedLLM([], name="m")
    return PreciseRAG.from_documents(DOCUMENTS, llm, preset=preset, encoder=HashEncoder()).index


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(["default", None]) | strategy


RELEVANCE = st.builds(
    RelevanceFilter,
    mode=st.sampled_from(["batch", "single"]),
    batch_size=st.integers(1, 5),
    ask_threshold=st.booleans(),
    unscored=st.sampled_from(["keep", "drop"]),
)
PIPELINES = st.fixed_dictionaries(
    {
        "preset": st.sampled_from(["precise", "sage", "paretorag", "chunkrag", "recursive"]),
        "rewriter": maybe(st.builds(QueryRewriter)),
        "reranker": st.sampled_from(["packaged", None]),
        "redundancy": st.sampled_from(["default", None]),
        "relevance": maybe(RELEVANCE),
        "selector": st.none()
        | st.builds(
            GradientSelector,
            min_k=st.integers(1, 9),
            ratio=st.sampled_from([0.0, 0.3, 1.0]),
            max_tokens=st.sampled_from([None, 5, 60]),
            min_score=st.sampled_from([None, 0.02, 0.9]),
            assume_ratio=st.just(True),
        ),
        "feedback": maybe(
            st.builds(FeedbackController, max_rounds=st.integers(0, 4), reach=st.integers(1, 3))
        ),
        "judge_prompt": st.sampled_from(["json", "sage"]),
        "order": st.sampled_from(["document", "score"]),
        "n_candidates": st.integers(1, 12),
        "budget": st.none()
        | st.builds(Budget, calls=st.integers(1, 12))
        | st.builds(Budget, tokens=st.integers(300, 6000))
        | st.builds(Budget, cost=st.sampled_from([0.0005, 0.005]), calls=st.none() | st.integers(1, 12)),
    }
)
QUESTIONS = st.fixed_dictionaries(
    {
        "options": st.sampled_from([(), ("the master", "number 2")]),
        "history": st.sampled_from([(), (("user", "Is there a school?"), ("assistant", "Yes, one."))]),
    }
)


def used(trace: Trace) -> Bill:
    return Bill(len(trace.calls), trace.input_tokens, trace.output_tokens, trace.cost)


@settings(QUICK, max_examples=60)
@given(pipeline=PIPELINES, question=QUESTIONS, seed=st.integers(0, 10**6))
def test_no_question_without_failures_uses_more_than_the_most_or_less_than_the_least(
    pipeline: dict[str, Any], question: dict[str, Any], seed: int
) -> None:
    estimate, trace, answer = asked(index_of(pipeline["preset"]), readable, pipeline, question, seed)
    check_most(estimate, trace, same_pieces=not (pipeline["rewriter"] or question["history"]))
    check_least(estimate, trace, answer)


@settings(QUICK, max_examples=40)
@given(pipeline=PIPELINES, question=QUESTIONS, seed=st.integers(0, 10**6))
def test_no_question_that_is_answered_uses_less_than_the_least(
    pipeline: dict[str, Any], question: dict[str, Any], seed: int
) -> None:
    estimate, trace, answer = asked(index_of(pipeline["preset"]), reply, pipeline, question, seed)
    check_least(estimate, trace, answer)


@settings(QUICK, max_examples=20)
@given(pipeline=PIPELINES, question=QUESTIONS, seed=st.integers(0, 10**6))
def test_the_tokens_hold_for_other_words_where_all_pieces_are_found(
    pipeline: dict[str, Any], question: dict[str, Any], seed: int
) -> None:
    estimate, trace, answer = asked(sentences(), readable, {**pipeline, "n_candidates": 40}, question, seed)
    check_most(estimate, trace, same_pieces=True)
    check_least(estimate, trace, answer)


def test_the_most_is_what_a_question_with_every_round_calls() -> None:
    again = '{"reason": "so", "score": 4, "adjustment": 1}'
    llm = ScriptedLLM(["The master does [1].", again] * 3, name="m")
    rag = PreciseRAG(
        index_of("precise"), llm, prices=PRICES, feedback=FeedbackController(max_rounds=3), selector=None
    )
    most = rag.estimate(QUESTION).most
    bill = used(rag.answer(QUESTION).trace)
    assert bill.calls <= most.calls <= 3 * bill.calls
    assert most.calls == 6


def test_the_most_of_a_relevance_filter_asks_once_about_each_chunk() -> None:
    llm = ScriptedLLM(lambda messages: readable(messages, random.Random(1)), name="m")
    relevance = RelevanceFilter(batch_size=5, unscored="keep")
    rag = PreciseRAG(sentences(), llm, n_candidates=25, relevance=relevance, prices=PRICES)
    most = rag.estimate(QUESTION).most
    bill = used(rag.answer(QUESTION).trace)
    assert bill.calls <= most.calls <= 3 * bill.calls


def asked(
    index: Any, model: Any, pipeline: dict[str, Any], question: dict[str, Any], seed: int
) -> tuple[Estimate, Trace, Answer | None]:
    """The estimate of a question, and what it used and gave."""
    chance = random.Random(seed)
    llm = ScriptedLLM(lambda messages: model(messages, chance), name="m")
    rag = PreciseRAG(index, llm, prices=PRICES, **pipeline)
    estimate = rag.estimate(QUESTION, **question)
    assert llm.calls == []
    trace, answer = Trace(QUESTION), None
    with suppress(LLMError):
        answer = rag.answer(QUESTION, trace=trace, **question)
    return estimate, trace, answer


def check_most(estimate: Estimate, trace: Trace, *, same_pieces: bool) -> None:
    bill, most = used(trace), estimate.most
    assert bill.calls <= most.calls
    if same_pieces:  # other words may find longer pieces, which cannot be known
        assert bill.input_tokens <= most.input_tokens
        assert bill.output_tokens <= most.output_tokens
        assert bill.cost <= most.cost + 1e-12


def check_least(estimate: Estimate, trace: Trace, answer: Answer | None) -> None:
    if answer is None:
        return
    bill, least = used(trace), estimate.least
    assert bill.calls >= least.calls
    if not any(call.error for call in trace.calls):
        assert bill.input_tokens >= least.input_tokens
        assert bill.output_tokens >= least.output_tokens
        assert bill.cost >= least.cost - 1e-12


@cache
def sentences() -> Any:
    return SentenceContextIndex.build(DOCUMENTS, HashEncoder())


@settings(QUICK, max_examples=60)
@given(pipeline=PIPELINES, question=QUESTIONS, seed=st.integers(0, 10**6), calls=st.integers(1, 6))
def test_no_stage_goes_beyond_the_calls_of_the_one_budget(
    pipeline: dict[str, Any], question: dict[str, Any], seed: int, calls: int
) -> None:
    chance = random.Random(seed)
    llm = ScriptedLLM(lambda messages: reply(messages, chance), name="m")
    rag = PreciseRAG(
        index_of(pipeline["preset"]), llm, prices=PRICES, **{**pipeline, "budget": Budget(calls=calls)}
    )
    with suppress(LLMError):
        rag.answer(QUESTION, **question)
    assert len(llm.calls) <= calls


def test_the_last_call_of_a_budget_is_for_the_answer() -> None:
    llm = ScriptedLLM(["The master does [1]."], name="m")
    rag = PreciseRAG.from_documents(
        DOCUMENTS, llm, preset="chunkrag", encoder=HashEncoder(), budget=Budget(calls=1)
    )
    answer = rag.answer(QUESTION, history=[("user", "Is there a school?")])
    assert answer.text == "The master does [1]."
    assert len(llm.calls) == 1
    assert "the question was not rewritten: calls over budget" in answer.note


def test_an_estimate_of_everything_in_an_accepted_first_round() -> None:
    llm = ScriptedLLM(["The master does [1].", '{"reason": "so", "score": 9, "adjustment": 0}'], name="m")
    rag = PreciseRAG(index_of("precise"), llm, reranker="packaged", prices=PRICES)
    estimate = rag.estimate(QUESTION)
    bill = used(rag.answer(QUESTION).trace)
    assert estimate.least.calls == bill.calls == 2
    assert 0.4 * bill.input_tokens < estimate.least.input_tokens <= bill.input_tokens
    assert estimate.most.cost == pytest.approx(
        (estimate.most.input_tokens + 3 * estimate.most.output_tokens) / 1e6
    )
