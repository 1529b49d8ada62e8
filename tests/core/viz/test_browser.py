"""Pages in a real browser, on a desk and on a phone, in light and dark."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from precise_rag.evaluation import circumstances, evaluate, load_plan, render_report
from precise_rag.testing import HashEncoder
from precise_rag.trace import StageRecord, Trace
from precise_rag.types import Candidate, Decision, Excerpt, Selection
from support.traces import full_trace
from support.village import PLAN, dataset

playwright = pytest.importorskip("playwright.sync_api")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs the browser Chromium"),
]

LEAST_CONTRAST = 4.5
LEAST_PIXELS = 9
"""Height of the letters of a chart."""

FAINT_WORDS = """least => {
  const probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const colour = css => {
    probe.clearRect(0, 0, 1, 1); probe.fillStyle = css; probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.tagName === 'title') continue;
    const style = getComputedStyle(element);
    const inks = element instanceof SVGElement ? style.fill : style.color;
    const [dark, bright] = [light(colour(inks)), light(ground(element))].sort((a, b) => a - b);
    const contrast = (bright + 0.05) / (dark + 0.05);
    if (contrast < least) faint.push([walker.currentNode.data.slice(0, 40), contrast]);
  }
  return faint;
}"""
SMALL_LABELS = """least => [...document.querySelectorAll('svg text')]
  .filter(text => text.getBoundingClientRect().height < least && text.checkVisibility())
  .map(text => text.textContent)"""
UNNAMED = """() => [...document.querySelectorAll('svg, img')]
  .filter(picture => !(picture.getAttribute('aria-label') || picture.getAttribute('alt')))
  .map(picture => picture.outerHTML.slice(0, 80))"""
CUT_OFF = """() => [...document.querySelectorAll('.wide, table, ol, ul')]
  .filter(box => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
  .map(box => box.textContent.slice(0, 80))"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach(one => one.open = true)"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One page of each kind, with long words, code, tables and folded parts."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    plan = load_plan(folder / "plan.toml")
    (outcome,) = evaluate(plan, [dataset()], HashEncoder(), folder / "runs", traces=True)
    code = "def add(first, second):\n    return first  +  second  # " + "and_so_on_" * 30
    found = Candidate("d" * 90, 0, len(code), code, 0.5, "probability")
    searched = Trace("Where is " + "x" * 200 + "?")
    searched.answer = code
    searched.send([Excerpt(**asdict(found), sentences=(Decision(1, found, True, "worth 0.5"),))], lambda _: 5)
    searched.add(StageRecord("selection", Selection.keep_all([found] * 60, "worth 0.5"), 0.1))
    return {
        "answer": full_trace().to_html(),
        "search": searched.to_html(),
        "traces": searched.compare(full_trace(), ("a long name" * 5, "b")),
        "report": render_report([outcome], circumstances(0), folder),
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["answer", "search", "traces", "report"])
def test_a_page_can_be_read(
    name: str, width: int, scheme: str, pages: dict[str, str], browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(pages[name], encoding="utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=False
    )
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(FAINT_WORDS, LEAST_CONTRAST) == []
    assert page.evaluate(SMALL_LABELS, LEAST_PIXELS) == []
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(CUT_OFF) == []
    assert asked == [file.as_uri()]
    context.close()
