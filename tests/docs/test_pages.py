"""README, pages and docstrings: their Python runs, their commands are understood, their links hold."""

import doctest
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

import precise_rag.errors
from precise_rag.cli import build_parser
from support.chat_server import ChatServer, says

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PACKAGE = ROOT / "core" / "precise_rag"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", *ROOT.glob("*/README.md")]
ALL = pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: f"{page.parent.name}-{page.stem}")
NAMED = r"`((?:core|docs|tests|examples|benchmarks|training|\w+_precise)/[\w./-]+)`"
OURS = re.compile(r"https://github\.com/precise-rag/precise-rag/(?:blob|tree)/main/(.*)")


WITH_EXAMPLES = [
    ".".join(("precise_rag", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text("utf-8")
]


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code of a page in a language, below as many empty lines as stand above them."""
    text = page.read_text("utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return ["\n" * (text[: match.start()].count("\n") + 1) + match[1] for match in found]


def anchors(page: Path) -> set[str]:
    """The places in a page that a link may name."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in titles}


@pytest.fixture
def frameworks(monkeypatch):
    """Settings of LlamaIndex as they were; a chat server that answers `OpenAIChat`."""
    settings = pytest.importorskip("llama_index.core").Settings
    dispatcher = pytest.importorskip("llama_index.core.instrumentation").get_dispatcher()
    monkeypatch.setattr(settings, "_llm", None)
    monkeypatch.setattr(dispatcher, "event_handlers", [])
    replies = [says("Ilse Brandt [1]."), says('{"reason": "right", "score": 10, "adjustment": 0}')]
    with ChatServer(replies) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda page: page.stem)
def test_the_python_on_the_page_runs(page, frameworks, tmp_path, monkeypatch):
    pytest.importorskip("langchain_core")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), names)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_docstring_run(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted
    assert not results.failed


def test_every_command_line_is_understood_and_the_readme_is_one_page():
    lines = [line for page in PAGES for block in blocks(page, "bash") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("precise ")]
    assert len(commands) > 10
    for line in commands:
        build_parser().parse_args(shlex.split(line, comments=True)[1:])
    assert len(README.read_text("utf-8").splitlines()) <= 100


@ALL
def test_every_link_leads_to_a_place_that_there_is(page):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        ours = OURS.fullmatch(link)
        if link.startswith("http") and not ours:
            continue
        assert page != README or ours, f"{link}: on a package index only whole addresses lead anywhere"
        path, _, anchor = (ours[1] if ours else link).partition("#")
        target = (ROOT if ours else page.parent) / path if path else page
        assert target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), link


@ALL
def test_what_the_page_names_exists(page):
    text = page.read_text("utf-8")
    for module in re.findall(r"python -m ((?:benchmarks|training)(?:\.\w+)*)", text):
        assert importlib.util.find_spec(module), module
    for error in re.findall(r"`(\w+Error|BudgetExceeded|MissingExtra)`", text):
        assert hasattr(precise_rag.errors, error), error
    for path in re.findall(NAMED, text):
        assert (ROOT / path).exists(), path


# Every figure of docs/measurements.md is in the page that its section links.

FIGURES = (ROOT / "docs" / "measurements.md").read_text("utf-8")
SECTIONS = [section for section in FIGURES.split("\n## ")[1:] if "\n|" in section]


def rows(text):
    """The cells of each row of the tables, as sets."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [{cell.strip() for cell in line.split("|")} for line in lines if "---" not in line]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0])
def test_each_row_stands_in_the_page_of_results(section):
    linked = re.findall(r"/blob/main/(benchmarks/results/[\w-]+\.md)", section)
    found = [row for page in linked for row in rows((ROOT / page).read_text("utf-8"))]
    assert re.search(r"`python -m benchmarks\.[^`]+`", section)
    for row in rows(section):
        assert any(row <= one for one in found), row


def test_the_table_of_the_readme_is_the_first_one_there():
    table = next(part for part in README.read_text("utf-8").split("\n## ") if "| pipeline | 200 |" in part)
    figures = {number.strip(" +-*") for row in rows(SECTIONS[0])[1:] for number in row}
    shown = [cell.strip("*") for row in rows(table)[1:] for cell in row if re.match(r"\**\d", cell)]
    assert len(shown) >= 25
    assert set(shown) <= figures


def test_each_page_of_results_is_linked_in_the_list_of_benchmarks():
    folder = ROOT / "benchmarks"
    linked = set(re.findall(r"\]\(results/([\w-]+\.md)\)", (folder / "README.md").read_text("utf-8")))
    assert linked == {page.name for page in (folder / "results").iterdir()}
