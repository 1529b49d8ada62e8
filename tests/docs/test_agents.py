"""The Python of the page on agents runs as written."""

import re
from pathlib import Path

import pytest

from precise_rag.cli import build_parser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "agents.md").read_text("utf-8")


def test_the_pages_examples_run(capsys):
    pytest.importorskip("langchain")
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
        exec(compile(block, "docs/guides/agents.md", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.count("__exit__") >= 2
    assert shown.count("read_result(reference=") == 2


def test_the_container_runs_a_command_that_there_is():
    lines = (ROOT / "examples" / "service" / "Dockerfile").read_text("utf-8").splitlines()
    words = [re.findall(r'"([^"]*)"', line) for line in lines if line.startswith(("ENTRYPOINT", "CMD"))]
    command = [word for found in words for word in found]
    assert command[0] == "precise"
    args = build_parser("serve").parse_args(command[1:])
    assert (args.rest, args.host, args.allow_host) == (True, "0.0.0.0", ["localhost"])
