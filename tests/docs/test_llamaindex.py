"""The Python on the LlamaIndex pages runs page by page, as written but for a cheaper encoder."""

import re
from pathlib import Path

import pytest
from llama_index.core.instrumentation import get_dispatcher

from support.llamaindex import HashEmbedding

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "adapters").glob("llamaindex*.md")), DOCS / "guides" / "migration.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_on_the_page_runs(page, monkeypatch, tmp_path):
    embedding = HashEmbedding()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("llamaindex_precise.PreciseEmbedding", lambda: embedding)
    monkeypatch.setattr("llamaindex_precise.embeddings.DEFAULT_ENCODER", embedding.encoder)
    monkeypatch.setattr(get_dispatcher(), "event_handlers", [])
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "from langchain_core" not in block]
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
