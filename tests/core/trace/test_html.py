import json
import shutil
from contextlib import suppress
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path

import pytest

from precise_rag.errors import InputError
from precise_rag.redaction import visible
from precise_rag.trace import StageRecord, Trace
from precise_rag.trace.html import _LONGEST_LIST, _LONGEST_TEXT, trace_page
from precise_rag.types import Candidate, Decision, Excerpt, Selection
from support.traces import KEPT, SECRET, full_trace

TEXT = "Pumps need oil. They need it often. A dry pump stops. Nobody likes that."
SPANS = [((0, 16), 0.9), ((36, 54), 0.5), ((54, 72), 0.01)]


class Page(HTMLParser):
    """Reads a page: its tags must nest, and it may run and load nothing."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(markup)
        assert self.open == [], "every tag is closed"
        assert not {"script", "link", "img", "iframe", "a"} & set(self.tags)
        assert "src" not in dict(self.attributes)
        assert "url(" not in markup

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def sent_trace() -> Trace:
    """Two sentences were sent in one excerpt, with the one between them; the last one was left out."""
    trace = Trace("What does a pump need?")
    first, third, last = (
        Candidate("pump.md", *span, TEXT[slice(*span)], score, "probability", n_tokens=4)
        for span, score in SPANS
    )
    decisions = (Decision(1, first, True, "worth 0.9"), Decision(2, third, True, "worth 0.5"))
    trace.add(StageRecord("search", Selection.keep_all([third, first, last], "candidate"), 30.0))
    trace.add(StageRecord("selection", Selection((*decisions, Decision(3, last, False, "unlikely"))), 10.0))
    excerpt = Excerpt(
        "pump.md", 0, 53, TEXT[:53], 0.9, "probability", above=("Pumps", "Care"), sentences=decisions
    )
    trace.send([excerpt], lambda piece: 7)
    return trace


def test_the_page_shows_what_was_sent_then_the_scores_then_the_steps() -> None:
    page = Page(sent_trace().to_html())
    sent = ("What was sent: 1 excerpt, ", "pump.md", "Pumps › Care", TEXT[:53])
    parts = ("What does a pump need?", *sent, "2 of 3 pieces kept", "Steps")
    found = [page.text.index(part) for part in parts]
    assert found == sorted(found)
    assert page.tags.count("mark") == 2
    assert ("title", "rank 2: worth 0.5") in page.attributes
    assert "Nobody likes that.unlikely" in page.text


def test_the_page_shows_answer_rounds_and_costs_and_may_leave_texts_out() -> None:
    trace = full_trace()
    trace.answer = "It <is> & was."
    trace.settings["reranker"] = "packaged/2"
    page = Page(trace.to_html())
    for part in ("It <is> & was.", "$0.002000", "answer/1/open", "the judge failed", "packaged/2", KEPT.text):
        assert part in page.text
    trace = full_trace()
    private = trace.to_html(include_text=False)
    assert SECRET not in private
    assert TEXT[:10] not in sent_trace().to_html(include_text=False)
    assert Page(private).tags.count("li") == 2
    assert trace_page(json.loads(trace.to_json())) == trace.to_html()


@pytest.mark.parametrize("scores", [[], [0.0, 0.0], [3.2, -1.5], [0.5]])
def test_any_scores_make_a_page(scores: list[float]) -> None:
    trace = Trace("q")
    candidates = (Candidate("d", n, n + 1, "x", score, "logit") for n, score in enumerate(scores))
    selection = Selection(tuple(Decision(n, c, n > 1, "why") for n, c in enumerate(candidates, start=1)))
    trace.add(StageRecord("selection", selection, 0.1))
    assert Page(trace.to_html()).tags.count("li") == len(scores)


def test_hostile_text_stays_text_and_control_characters_are_escapes() -> None:
    hostile = "</style><script>alert(1)</script>\u202e\x1b[31m\ud800\r\t"
    trace = Trace(hostile)
    trace.answer = hostile
    piece = Candidate(hostile, 0, 1, hostile, 0.5, "probability")
    trace.add(StageRecord("selection", Selection((Decision(1, piece, False, hostile),)), 0.1))
    markup = trace.to_html()
    assert visible(markup) == markup
    assert "\\u202e\\x1b[31m\\ud800\\x0d\t" in Page(markup).text


def test_a_stored_record_writes_no_markup_where_numbers_stand() -> None:
    whole = sent_trace().to_dict()
    for find in (lambda record: record["context"][0], lambda record: record["stages"][1]["candidates"][0]):
        for name in ("number", "start", "page", "doc_id", "rank", "score", "id", "reason"):
            record = json.loads(json.dumps(whole))
            find(record)[name] = "<script>"
            with suppress(InputError):
                assert "<script" not in trace_page(record)


@pytest.mark.slow
def test_long_lists_and_texts_are_cut_and_the_page_says_so() -> None:
    record = full_trace().to_dict()
    (stage,) = record["stages"]
    stage["candidates"] = [{**stage["candidates"][0], "text": "word " * 20_000}] * 3_000
    record["calls"] = record["calls"] * 5_000
    page = trace_page(record)
    assert len(page) < 20_000_000
    said = f"more than {_LONGEST_TEXT:,} characters and of lists of more than {_LONGEST_LIST} entries"
    assert said in Page(page).text


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.services
@pytest.mark.skipif(BROWSER is None, reason="needs the browser Chromium")
def test_the_page_fits_a_desk_and_a_phone_and_asks_for_nothing(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    code = "def add(first, second):\n    return first  +  second  # " + "and_so_on_" * 30
    found = Candidate("d" * 90, 0, len(code), code, 0.5, "probability")
    trace = Trace("Where is " + "x" * 200 + "?")
    trace.send([Excerpt(**asdict(found), sentences=(Decision(1, found, True, "worth 0.5"),))], lambda _: 5)
    trace.add(StageRecord("selection", Selection.keep_all([found] * 60, "worth 0.5"), 0.1))
    file = tmp_path / "page.html"
    file.write_text(trace.to_html(), encoding="utf-8")
    asked: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for width in (1280, 390):
            page = browser.new_page(viewport={"width": width, "height": 900}, java_script_enabled=False)
            page.on("request", lambda request: asked.append(request.url))
            page.goto(file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("svg rect").count() == 60
            assert page.locator("mark").is_visible()
        browser.close()
    assert asked == [file.as_uri()] * 2
