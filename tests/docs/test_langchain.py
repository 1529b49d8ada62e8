"""The Python on the LangChain pages runs page by page, as written but for a cheaper encoder."""

import re
from pathlib import Path

import pytest

from precise_rag.testing import HashEncoder

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "adapters").glob("langchain*.md")), DOCS / "guides" / "migration.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_on_the_page_runs(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for loader in ("encoders.load._local_encoder", "index.load.load_packaged_encoder"):
        monkeypatch.setattr(f"precise_rag.{loader}", lambda *source, **options: HashEncoder())
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "from llama_index" not in block]
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
