import re
from pathlib import Path

import precise_rag.errors
from precise_rag.errors import LLMError

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "answering.md").read_text("utf-8")


def test_the_pages_examples_run_in_order(capsys):
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(compile(block, "docs/guides/answering.md", "exec"), names)
    assert capsys.readouterr().out.startswith("Ada Brandt built it [1]. 10 accepted with 10 of 10\n")
    assert "1911" in names["page"]


def test_every_error_of_the_page_exists():
    table = PAGE.partition("## Errors")[2]
    for name in re.findall(r"`(\w+(?:Error|Exceeded))`", table):
        assert issubclass(getattr(precise_rag.errors, name), LLMError)
