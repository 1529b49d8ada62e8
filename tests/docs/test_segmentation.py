"""The segmentation guide: its Python runs as written, and its command lines are understood."""

import re
import shlex
from pathlib import Path

from precise_rag.cli import build_parser

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "segmentation.md").read_text("utf-8")


def test_the_python_runs():
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "segmentation.md", "exec"), names)


def test_every_command_line_is_understood():
    lines = [
        line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
    ]
    assert lines
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "precise"
        build_parser().parse_args(arguments)
