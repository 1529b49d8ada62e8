"""The Python in the LangChain pages, run page by page as it stands."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "components").glob("langchain*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
