"""The page of a trace in a real browser."""

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from precise_rag.trace import StageRecord, Trace
from precise_rag.types import Candidate, Decision, Excerpt, Selection

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.slow
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
