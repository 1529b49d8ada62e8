import json
from html.parser import HTMLParser

import pytest

from precise_rag.errors import InputError
from precise_rag.trace import Bill, CallRecord, Ledger, RoundRecord, StageRecord, Trace
from precise_rag.types import Candidate, Decision, Judgement, Message, Selection
from precise_rag.viz.trace_page import trace_page

SECRET = "the patient's name"
KEPT = Candidate("d", 0, 9, f"Text with {SECRET}.", 0.9, "probability", n_tokens=5, scores={"bm25": 8.4})
DROPPED = Candidate("d", 9, 20, f"More of {SECRET}.", 0.2, "probability", n_tokens=6)
SELECTION = Selection((Decision(1, KEPT, True, "first"), Decision(2, DROPPED, False, "sharp drop")))


def full_trace():
    trace = Trace(f"What is {SECRET}?")
    trace.add(StageRecord("selection", SELECTION, 1.25, {"ratio": 0.3, "min_k": 1}, 1, f"limit: {SECRET}"))
    trace.add(
        CallRecord(
            "answer",
            "answer/1/open",
            "m",
            20.0,
            input_tokens=100,
            output_tokens=10,
            cost=0.002,
            round=1,
            messages=(Message("user", f"Where is {SECRET}?"),),
            text=f"Here is {SECRET}.",
        )
    )
    trace.add(CallRecord("judge", "judge/1/json", "m", 5.0, error=f"LLMServerError: m: {SECRET}", round=1))
    judgement = Judgement(None, 0, "failed", f"raw {SECRET}")
    trace.add(RoundRecord(1, 7, ("d:0-9",), judgement, f"the judge failed: {SECRET}", f"Here is {SECRET}."))
    trace.notes.append(f"the judge failed: {SECRET}")
    return trace


def test_the_whole_record_as_json():
    record = json.loads(full_trace().to_json())
    assert record["question"] == f"What is {SECRET}?"
    assert (record["input_tokens"], record["output_tokens"], record["cost"]) == (100, 10, 0.002)
    assert record["ms"] == 26.25
    assert record["stages"] == [
        {
            "stage": "selection",
            "round": 1,
            "ms": 1.25,
            "settings": {"ratio": 0.3, "min_k": 1},
            "note": f"limit: {SECRET}",
            "candidates": [
                {
                    "rank": 1,
                    "id": "d:0-9",
                    "score": 0.9,
                    "score_scale": "probability",
                    "scores": {"bm25": 8.4},
                    "n_tokens": 5,
                    "kept": True,
                    "reason": "first",
                    "text": KEPT.text,
                },
                {
                    "rank": 2,
                    "id": "d:9-20",
                    "score": 0.2,
                    "score_scale": "probability",
                    "scores": {},
                    "n_tokens": 6,
                    "kept": False,
                    "reason": "sharp drop",
                    "text": DROPPED.text,
                },
            ],
        }
    ]
    assert [call["prompt_version"] for call in record["calls"]] == ["answer/1/open", "judge/1/json"]
    assert record["calls"][0]["messages"] == [{"role": "user", "content": f"Where is {SECRET}?"}]
    assert record["rounds"][0] == {
        "round": 1,
        "min_k": 7,
        "kept": ["d:0-9"],
        "score": None,
        "adjustment": 0,
        "judgement": "failed",
        "decision": f"the judge failed: {SECRET}",
        "text": f"Here is {SECRET}.",
        "judgement_text": f"raw {SECRET}",
    }


def test_texts_of_users_and_documents_can_be_left_out():
    trace = full_trace()
    private = trace.to_json(include_text=False)
    assert SECRET not in private
    record = json.loads(private)
    assert record["calls"][1]["error"] == "LLMServerError"
    assert record["notes"] == ["the judge failed"]
    assert record["stages"][0]["candidates"][1]["reason"] == "sharp drop"
    assert SECRET in trace.to_json()


def test_a_stage_is_timed_and_shown():
    seen = []
    trace = Trace("q", observer=seen.append)
    with trace.stage("rerank", reranker="r") as stage:
        stage.outcome = [KEPT, DROPPED]
        stage.note = "n"
    (record,) = trace.stages
    assert seen == [record]
    assert (record.name, record.settings, record.note) == ("rerank", {"reranker": "r"}, "n")
    assert record.ms >= 0
    assert [(d.rank, d.kept, d.reason) for d in record.selection.decisions] == [
        (1, True, "candidate"),
        (2, True, "candidate"),
    ]


def test_a_stage_that_raises_leaves_no_record():
    trace = Trace("q")
    with pytest.raises(ValueError, match="x"), trace.stage("search"):
        raise ValueError("x")
    assert trace.stages == []


def test_an_unknown_cost_is_none_and_not_nothing():
    trace = Trace("q")
    assert trace.cost == 0
    trace.add(CallRecord("answer", "v", "m", 1.0, input_tokens=1, cost=0.5))
    trace.add(CallRecord("answer", "v", "m", 1.0, error="LLMError: x"))
    assert trace.cost == 0.5
    trace.add(CallRecord("judge", "v", "other", 1.0, input_tokens=1))
    assert trace.cost is None


def test_a_ledger_sums_by_model_and_role():
    ledger = Ledger()
    for n in (1, 3):
        trace = Trace("q")
        trace.add(
            CallRecord("answer", "v", "big", 1.0, input_tokens=100 * n, output_tokens=10, cost=0.01 * n)
        )
        trace.add(CallRecord("judge", "v", "small", 1.0, input_tokens=50, output_tokens=5, cost=0.001))
        trace.add(CallRecord("judge", "v", "small", 1.0, error="LLMError: x"))
        ledger.add(trace)
    assert ledger.total == Bill(6, 500, 30, pytest.approx(0.042))
    assert ledger.by_model == {
        "big": Bill(2, 400, 20, pytest.approx(0.04)),
        "small": Bill(4, 100, 10, pytest.approx(0.002)),
    }
    assert set(ledger.by_role) == {"answer", "judge"}
    assert ledger.cost_per_question == pytest.approx(0.021)
    assert ledger.cost_efficiency(0.63) == pytest.approx(30.0)
    assert ledger.to_dict()["total"]["calls"] == 6


def test_a_ledger_with_an_unknown_price_says_so():
    ledger = Ledger()
    with pytest.raises(InputError, match="empty"):
        _ = ledger.cost_per_question
    trace = Trace("q")
    trace.add(CallRecord("answer", "v", "mine", 1.0, input_tokens=100))
    ledger.add(trace)
    assert ledger.total.cost is None
    assert ledger.cost_efficiency(0.5) is None


class Page(HTMLParser):
    """Checks that tags nest, and collects tags, attributes and text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_stands_alone_and_shows_curve_cut_reasons_rounds_and_cost():
    trace = full_trace()
    trace.answer = "It <is> & was."
    trace.settings["reranker"] = "packaged/2"
    page = Page(trace.to_html())
    text = " ".join(page.text)
    for part in (
        "1 of 2 chunks kept",
        "sharp drop",
        "It <is> & was.",
        "$0.002000",
        "answer/1/open",
        "the judge failed",
        "packaged/2",
        KEPT.text,
    ):
        assert part in text
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href"} & {name for name, _ in page.attributes}
    assert "url(" not in trace.to_html()
    assert page.tags.count("rect") == 2
    assert [
        value for name, value in page.attributes if name == "class" and value in ("bar-keep", "bar-drop")
    ] == [
        "bar-keep",
        "bar-drop",
    ]
    assert ("class", "cut") in page.attributes


def test_the_page_can_leave_texts_out_and_be_made_from_a_stored_record():
    trace = full_trace()
    private = trace.to_html(include_text=False)
    assert SECRET not in private
    Page(private)
    assert trace_page(json.loads(trace.to_json())) == trace.to_html()


@pytest.mark.parametrize("scores", [[], [0.0, 0.0], [3.2, -1.5], [0.5]])
def test_any_scores_make_a_page(scores):
    trace = Trace("q")
    candidates = (Candidate("d", n, n + 1, "x", score, "logit") for n, score in enumerate(scores))
    selection = Selection(tuple(Decision(n, c, n > 1, "why") for n, c in enumerate(candidates, start=1)))
    trace.add(StageRecord("selection", selection, 0.1))
    assert Page(trace.to_html()).tags.count("rect") == len(scores)


def test_hostile_text_stays_text():
    hostile = "</style><script>alert(1)</script>"
    trace = Trace(hostile)
    candidate = Candidate(hostile, 0, 1, hostile, 0.5, "probability")
    trace.add(StageRecord("selection", Selection((Decision(1, candidate, False, hostile),)), 0.1))
    assert "script" not in Page(trace.to_html()).tags
