"""The Python on the pages runs as written, and the command lines are understood."""

import re
import shlex
from pathlib import Path

import pytest

from precise_rag.cli import build_parser

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    "pages",
    [
        ["quickstart.md", "guides/deployment.md"],
        ["guides/retrieval.md"],
        ["guides/retrieval.md", "guides/bring.md"],
    ],
    ids=lambda pages: pages[-1],
)
def test_the_python_on_the_pages_runs_in_order(pages, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for page in pages:
        for block in blocks(page, "python"):
            exec(compile(block, page, "exec"), names)
    assert (tmp_path / "my-index" / "manifest.json").is_file()


def test_every_command_line_is_understood():
    lines = [line for block in blocks("cli.md", "bash") for line in block.splitlines()]
    assert len(lines) > 10
    for line in lines:
        program, *arguments = shlex.split(line.partition(" > ")[0])
        assert program == "precise"
        build_parser().parse_args(arguments)


def test_every_command_has_a_row():
    table = (DOCS / "cli.md").read_text("utf-8")
    usage = build_parser().format_help()
    commands = re.findall(r"^    (\w+) ", usage, re.MULTILINE)
    assert len(commands) >= 7
    assert [command for command in commands if f"| `precise {command}` |" not in table] == []
