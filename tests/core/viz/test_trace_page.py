import json

import pytest

from precise_rag.errors import InputError
from precise_rag.trace import StageRecord, Trace
from precise_rag.types import Candidate, Decision, Excerpt, Selection
from precise_rag.viz.terminal import visible
from precise_rag.viz.trace_comparison import trace_comparison_page
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
    assert page.tags.count("rect") == 2 * 2, "one picture for a desk and one for a phone"
    assert [value for value in page.values("class") if value in ("keep", "drop")] == ["keep", "drop"] * 2
    assert "cut" in page.values("class")
    assert "scores by rank, 1 of 2 kept; the last kept is rank 1" in page.values("aria-label")


def test_a_stored_record_writes_no_markup_where_numbers_stand():
    record = json.loads(full_trace().to_json())
    script = "<script>alert(1)</script>"
    for stage in record["stages"]:
        for candidate in stage["candidates"]:
            candidate |= {"rank": script, "score": "nan"}
    sent = {"number": script, "doc_id": "d", "start": 0, "end": 1, "page": script, "above": [], "text": "x"}
    record["context"] = [{**sent, "tokens": {"text": 1, "titles": 0, "around": 0, f"'>{script}": 0}}]
    record["context"][0]["sentences"] = []
    assert "<script" not in trace_page(record)


def test_a_record_without_times_cannot_be_compared():
    record = full_trace().to_dict()
    with pytest.raises(InputError, match=r"Trace\.to_dict"):
        trace_comparison_page(record, {name: value for name, value in record.items() if name != "ms"})


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
    assert Page(trace.to_html()).tags.count("rect") == 2 * len(scores)


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


TEXT = "Pumps need oil. They need it often. A dry pump stops. Nobody likes that."


def sent_trace() -> Trace:
    """Two sentences were sent in one excerpt, with the one between them; the last one was left out."""
    trace = Trace("What does a pump need?")
    found = [
        Candidate("pump.md", *span, TEXT[slice(*span)], score, "probability", n_tokens=4)
        for span, score in SPANS
    ]
    first, third, last = found
    decisions = (Decision(1, first, True, "worth 0.9"), Decision(2, third, True, "worth 0.5"))
    trace.add(StageRecord("search", Selection.keep_all([third, first, last], "candidate"), 30.0))
    trace.add(StageRecord("selection", Selection((*decisions, Decision(3, last, False, "unlikely"))), 10.0))
    excerpt = Excerpt(
        "pump.md", 0, 53, TEXT[:53], 0.9, "probability", above=("Pumps", "Care"), sentences=decisions
    )
    trace.send([excerpt], lambda piece: 7)
    return trace


SPANS = [((0, 16), 0.9), ((36, 54), 0.5), ((54, 72), 0.01)]


def test_what_was_sent_comes_first_in_its_document_with_the_found_sentences_marked() -> None:
    page = assert_stands_alone(sent_trace().to_html())
    text = "".join(page.text)
    assert (
        text.index("What was sent: 1 excerpt")
        < text.index("Time line: 40 ms")
        < text.index("2 of 3 pieces kept")
    )
    assert text.index("pump.md") < text.index("Pumps › Care") < text.index("Pumps need oil.")
    assert "Pumps need oil. They need it often. A dry pump stops." in text
    assert page.tags.count("mark") == 2
    assert "rank 2: worth 0.5" in page.values("title")
    assert "1 piece left out here" in text
    assert "Nobody likes that. unlikely" in text


def test_tokens_by_excerpt_have_what_is_written_around_it() -> None:
    (excerpt,) = sent_trace().to_dict()["context"]
    assert excerpt["tokens"]["around"] == 7
    assert excerpt["tokens"]["titles"] > 0
    assert "written around each 7" in sent_trace().to_html()


def test_each_piece_has_its_rank_after_every_stage() -> None:
    text = "".join(assert_stands_alone(sent_trace().to_html()).text)
    assert "search 2 › selection 1" in text
    assert "search 1 › selection 2" in text


def test_two_traces_stand_side_by_side() -> None:
    first, second = sent_trace(), sent_trace()
    third = second.stages[-1].selection.decisions[1].candidate
    second.add(StageRecord("max_tokens", second.stages[-1].selection.dropping({third.id: "too many"}), 1.0))
    text = "".join(assert_stands_alone(first.compare(second, ("before", "after"))).text)
    assert "1 pieces in both, 1 only in before, 0 only in after" in text
    assert "kept, 2left out, 2A dry pump stops." in text
    with pytest.raises(InputError, match=r"Trace\.to_dict"):
        trace_comparison_page({}, first.to_dict())


def test_a_record_without_the_context_becomes_a_page() -> None:
    record = sent_trace().to_dict()
    del record["context"]
    assert "What was sent" not in trace_page(record)
