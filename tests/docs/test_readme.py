"""Every Python block of the README runs as it stands, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: re.findall(r"from (\w+_\w+) import", code)[-1])
def test_block_runs_and_prints(code, capsys):
    exec(compile(code, str(README), "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out.strip()


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README.read_text("utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
