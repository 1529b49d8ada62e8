import json

import pytest

from precise_rag.trace import CallRecord, Trace
from support.alike import assert_alike
from support.traces import DROPPED, KEPT, SECRET, full_trace


def test_the_whole_record_as_json():
    record = json.loads(full_trace().to_json())
    assert record["question"] == f"What is {SECRET}?"
    assert (record["input_tokens"], record["output_tokens"]) == (100, 10)
    assert record["cost"] == pytest.approx(0.002)
    assert record["ms"] == pytest.approx(26.25)
    of_text = ("id", "doc_id", "start", "end", "score", "score_scale", "scores", "n_tokens")
    names = ("rank", *of_text, "kept", "reason", "text")
    kept = (1, "d:0-9", "d", 0, 9, 0.9, "probability", {"bm25": 8.4}, 5, True, "first", KEPT.text)
    dropped = (2, "d:9-20", "d", 9, 20, 0.2, "probability", {}, 6, False, "sharp drop", DROPPED.text)
    chosen = {"candidates": [dict(zip(names, values, strict=True)) for values in (kept, dropped)]}
    its = {"stage": "selection", "round": 1, "ms": 1.25, "note": f"limit: {SECRET}"}
    assert_alike(record["stages"], [its | {"settings": {"ratio": 0.3, "min_k": 1}} | chosen])
    assert [call["prompt_version"] for call in record["calls"]] == ["answer/1/open", "judge/1/json"]
    assert record["calls"][0]["messages"] == [{"role": "user", "content": f"Where is {SECRET}?"}]
    said = {"text": f"Here is {SECRET}.", "judgement_text": f"raw {SECRET}"}
    judged = {"score": None, "judgement": "failed", "decision": f"the judge failed: {SECRET}"}
    first = {"round": 1, "step": 0, "kept": ["d:0-9"], "adjustment": 0}
    assert record["rounds"][0] == first | judged | said


def test_texts_of_users_and_documents_can_be_left_out():
    trace = full_trace()
    private = trace.to_json(include_text=False)
    assert SECRET not in private
    record = json.loads(private)
    assert record["calls"][1]["error"] == "LLMServerError"
    assert record["notes"] == ["the judge failed"]
    assert record["stages"][0]["candidates"][1]["reason"] == "sharp drop"
    assert SECRET in trace.to_json()
    trace.notes.append("failed" + " " * 200_000 + "x : secret")
    assert "secret" not in trace.to_json(include_text=False), "read in linear time"


def test_a_stage_is_timed_and_shown_unless_it_raises_and_an_unknown_cost_is_none():
    seen = []
    trace = Trace("q", observer=seen.append)
    with pytest.raises(ValueError, match="x"), trace.stage("search"):
        raise ValueError("x")
    with trace.stage("rerank", reranker="r") as stage:
        stage.outcome = [KEPT, DROPPED]
    (record,) = trace.stages
    assert seen == [record]
    assert (record.name, record.settings) == ("rerank", {"reranker": "r"})
    assert record.ms >= 0
    assert [(d.rank, d.kept, d.reason) for d in record.selection.decisions] == [
        (1, True, "candidate"),
        (2, True, "candidate"),
    ]
    trace = Trace("q")
    assert trace.cost == pytest.approx(0)
    trace.add(CallRecord("answer", "v", "m", 1.0, input_tokens=1, cost=0.5))
    trace.add(CallRecord("answer", "v", "m", 1.0, error="LLMError: x"))
    assert trace.cost == pytest.approx(0.5)
    trace.add(CallRecord("judge", "v", "other", 1.0, input_tokens=1))
    assert trace.cost is None
