import json

import pytest

from precise_rag.trace import StageRecord, Trace
from precise_rag.types import Candidate, Decision, Selection
from precise_rag.viz.terminal import visible
from precise_rag.viz.trace_page import trace_page
from support.html import Page, assert_stands_alone
from support.traces import KEPT, SECRET, full_trace


def test_the_page_stands_alone_and_shows_curve_cut_reasons_rounds_and_cost():
    trace = full_trace()
    trace.answer = "It <is> & was."
    trace.settings["reranker"] = "packaged/2"
    page = assert_stands_alone(trace.to_html())
    text = " ".join(page.text)
    for part in (
        "1 of 2 pieces kept",
        "sharp drop",
        "It <is> & was.",
        "$0.002000",
        "answer/1/open",
        "the judge failed",
        "packaged/2",
        KEPT.text,
    ):
        assert part in text
    assert page.tags.count("rect") == 2
    assert [value for value in page.values("class") if value in ("keep", "drop")] == ["keep", "drop"]
    assert "cut" in page.values("class")
    assert "scores by rank, 1 of 2 kept; the last kept is rank 1" in page.values("aria-label")


def test_white_space_of_chunks_is_kept():
    trace = Trace("q")
    code = Candidate("d", 0, 30, "def add(a, b):\n    return a  +  b", 0.5, "probability")
    trace.add(StageRecord("selection", Selection.keep_all([code], "first"), 0.1))
    assert code.text in "".join(Page(trace.to_html()).text)


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


def test_a_page_has_a_limit_and_says_what_it_leaves_out():
    trace = full_trace()
    record = trace.to_dict()
    assert "leaves out" not in trace_page(record)
    (stage,) = [stage for stage in record["stages"] if stage["stage"] == "selection"][:1]
    stage["candidates"] = [{**stage["candidates"][0], "text": "word " * 20_000}] * 3_000
    record["calls"] = record["calls"] * 5_000
    record["settings"] = {f"{n}": [["deep"] * 900] * 900 for n in range(3)} | {"n" * 10**6: 1}
    page = trace_page(record)
    assert len(page) < 20_000_000
    assert "This page leaves out " in page
    assert "entries of lists and " in page
    assert_stands_alone(page)


def test_characters_that_change_what_is_seen_are_shown_as_escapes():
    trace = Trace("who \u202erof\u202c \x1b[31mpays\x07?")
    trace.answer = "x\u2066y\u2069 \ud83d \u200f"
    odd = Candidate("d\u202e", 0, 9, "a\x9b\u2028b\r\tc", 0.5, "probability")
    trace.add(StageRecord("selection", Selection.keep_all([odd], "first\u2067"), 0.1))
    page = trace.to_html()
    assert visible(page) == page
    for part in (
        "\\u202erof\\u202c \\x1b[31mpays\\x07?",
        "x\\u2066y\\u2069 \\ud83d",
        "a\\x9b\\u2028b\\x0d\tc",
    ):
        assert part in page
