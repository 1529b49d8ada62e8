"""Every import and every dotted name of ours on the pages exists."""

import ast
import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OURS = ("precise_rag", "llamaindex_precise", "langchain_precise")
NAME = re.compile(rf"`((?:{'|'.join(OURS)})(?:\.\w+)+)[^`]*`")


def resolved(path):
    """What a dotted path names: a module, or what is in one."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not path.startswith(error.name):  # an extra is missing
                pytest.skip(str(error))
            continue
        return reduce(getattr, parts[end:], module)
    raise ModuleNotFoundError(path)


def imported(page):
    """The dotted paths that the Python blocks of a page import."""
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


def names(page):
    text = page.read_text("utf-8")
    found = {*imported(text), *NAME.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))}
    return sorted(name for name in found if name.startswith(OURS))


@pytest.mark.parametrize("page", [p for p in PAGES if names(p)], ids=lambda page: page.stem)
def test_the_names_on_the_page_exist(page):
    missing = []
    for name in names(page):
        try:
            resolved(name)
        except (AttributeError, ModuleNotFoundError):
            missing.append(name)
    assert missing == []


def is_command(module):
    place = ROOT / module.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()


def test_every_command_of_ours_on_the_pages_exists():
    pages = [page for page in PAGES if page.parent.name != "decisions"]  # these may name one that is gone
    pages += [*(ROOT / "benchmarks").glob("*.md"), *(ROOT / "training").glob("*.md")]
    named = {
        (page.name, module)
        for page in pages
        for module in re.findall(r"python -m ((?:benchmarks|training)(?:\.\w+)*)", page.read_text("utf-8"))
    }
    assert len(named) > 10
    assert [(page, module) for page, module in sorted(named) if not is_command(module)] == []
