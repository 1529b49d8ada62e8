"""Every Python block of the README runs as written, and its links lead to files of the project."""

import re
from pathlib import Path

import pytest

from support.chat_server import ChatServer, says

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
OURS = re.compile(r"\]\(https://github\.com/precise-rag/precise-rag/(?:blob|tree)/main/([^)#]+)")


@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: re.findall(r"from (\w+) import", code)[-1])
def test_block_runs_and_prints(code, capsys, monkeypatch):
    replies = [says("Ilse Brandt [1]."), says('{"reason": "right", "score": 10, "adjustment": 0}')]
    with ChatServer(replies) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out.strip()


def test_links_are_absolute_and_lead_to_files():
    links = OURS.findall(README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert re.findall(r"\]\((?!https://|#)", README) == []


def test_it_is_one_page():
    assert len(README.splitlines()) <= 130
