"""Settings, answers and traces with odd values: each is one error, or can be written."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from precise_rag.candidate_filters import DynamicThreshold, RedundancyFilter, RelevanceFilter
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import (
    InputError,
)
from precise_rag.feedback import FeedbackController
from precise_rag.llm import Budget, OpenAIChat
from precise_rag.prompts import Fence
from precise_rag.rerank import CohereReranker
from precise_rag.selection import GradientSelector
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import CallRecord, Price, PriceTable, StageRecord, Trace
from precise_rag.trace.html import trace_page
from precise_rag.types import Candidate, Message, Selection
from support.feedback import answering
from support.misbehaving import ACCEPTED, CANDIDATES, QUESTION


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 0, "3", True, 10**400])
def test_limits_must_be_numbers(value: Any) -> None:
    for name in ("calls", "tokens", "seconds", "cost"):
        with pytest.raises(InputError, match=f"budget: {name} must be"):
            Budget(**{name: value})
    with pytest.raises(InputError, match="timeout must be"):
        OpenAIChat("m", timeout=value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, "3", True, 10**400])
def test_prices_floors_and_settings_must_be_numbers(value: Any) -> None:
    for make in (
        lambda: PriceTable({"m": Price(value, 1.0)}),
        lambda: PriceTable({"m": Price(1.0, value)}),
        lambda: DynamicThreshold(min_score=value),
        lambda: DynamicThreshold(ceiling=value),
        lambda: DynamicThreshold(tight=value),
        lambda: DynamicThreshold(min_keep=value),
        lambda: DynamicThreshold(cap=value),
        lambda: GradientSelector(min_score=value) if value != -1 else GradientSelector(min_gap=value),
        lambda: GradientSelector(min_k=value),
        lambda: GradientSelector(max_tokens=value),
        lambda: RedundancyFilter(similarity_threshold=value),
        lambda: FeedbackController(max_rounds=value),
        lambda: FeedbackController(accept=value),
        lambda: RelevanceFilter(ScriptedLLM([]), batch_size=value),
        lambda: OpenAIChat("m", max_retries=value),
        lambda: OpenAIEncoder("m", timeout=value),
        lambda: CohereReranker(timeout=value),
        lambda: CohereReranker(batch_size=value),
    ):
        with pytest.raises(InputError, match="must "):
            make()


ODD_TEXTS = ["\ud800", "a\udfffb", "\x00\x1b[31m", "\u202e"]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_an_answer_with_odd_characters_can_be_written(text: str) -> None:
    def model(messages: Sequence[Message]) -> str:
        return (
            json.dumps({"score": 9, "reason": text}) if "adjustment" in messages[0].content else f"Ada{text}"
        )

    answer = answering(ScriptedLLM(model)).answer(QUESTION + text, candidates=CANDIDATES)
    assert answer.trace is not None
    record = json.loads(answer.trace.to_json().encode("utf-8"))
    assert record["answer"] == answer.text == f"Ada{text}"
    answer.trace.to_html().encode("utf-8")


def test_a_trace_with_odd_values_can_be_written() -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no")

    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    circular: dict[str, Any] = {}
    circular["self"] = circular
    trace = Trace("q\ud800")
    odd = {
        "nan": math.nan,
        "huge": 10**5_000,
        "array": np.float32(0.5),
        "deep": deep,
        "circular": circular,
        "unprintable": Unprintable(),
        (1, 2): {3, 4},
        "number": np.int64(3),
    }
    trace.settings = odd  # type: ignore[assignment]
    candidate = Candidate("d", 0, 1, "x", math.inf, "rank", scores={"dense": math.nan})
    trace.add(StageRecord("selection", Selection.keep_all([candidate]), math.nan, odd))  # type: ignore[arg-type]
    trace.add(CallRecord("answer", "v", "m", math.inf, cost=math.nan))
    record = json.loads(trace.to_json().encode("utf-8"))
    assert record["settings"]["number"] == 3
    assert record["stages"][0]["candidates"][0]["score"] == "inf"
    for include_text in (True, False):
        trace.to_html(include_text).encode("utf-8")


@pytest.mark.parametrize("record", [{}, [], None, {"stages": 3}, {"stages": [{}]}])
def test_a_record_that_is_no_trace_is_one_error(record: Any) -> None:
    with pytest.raises(InputError, match=r"must be one that Trace\.to_dict made"):
        trace_page(record)


def test_a_failing_observer_costs_no_answer() -> None:
    def observer(record: Any) -> None:
        raise RuntimeError("no")

    trace = Trace(QUESTION, observer=observer)
    answer = answering(ScriptedLLM(["Ada.", ACCEPTED])).answer(QUESTION, candidates=CANDIDATES, trace=trace)
    assert answer.text == "Ada."


@pytest.mark.parametrize(
    "honest", [[0.7, 0.65, 0.6, 0.2], [0.6, 0.55, 0.5, 0.45], [0.75, 0.7, 0.3, 0.1], [0.5, 0.4, 0.3, 0.2]]
)
def test_spam_does_not_lift_the_threshold_over_every_honest_chunk(honest: list[float]) -> None:
    rule = DynamicThreshold()
    for n_spam in (1, 6, 50):
        spammed = [*honest, *[1.0] * n_spam]
        kept = rule.relevant(spammed, rule.of(spammed))
        assert kept[0]
    assert rule.of([*honest, *[1.0] * 6]).reason == "capped, for 6 of 10 scores are near 1"
    assert DynamicThreshold(cap=None).of([*honest, *[1.0] * 6]).value > honest[0]


def test_a_mark_in_nested_pieces_does_not_survive() -> None:
    mark = "0123456789abcdef"
    for depth in (1, 2, 3, 500):
        for at in range(1, len(mark)):
            text = mark[:at] * depth + mark + mark[at:] * depth
            assert mark not in Fence(mark).block("passage", text).split("\n")[1]
    with pytest.raises(InputError, match="letters and digits"):
        Fence("a b")
