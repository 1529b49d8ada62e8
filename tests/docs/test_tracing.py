"""The Python of the page on tracing runs as written."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "tracing.md").read_text("utf-8")


def test_the_pages_examples_run():
    langchain = pytest.importorskip("openinference.instrumentation.langchain")
    llamaindex = pytest.importorskip("openinference.instrumentation.llama_index")
    names: dict[str, Any] = {}
    try:
        for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
            exec(compile(block, "docs/guides/tracing.md", "exec"), names)
    finally:
        langchain.LangChainInstrumentor().uninstrument()
        llamaindex.LlamaIndexInstrumentor().uninstrument()
