"""Shells complete what the commands take."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from precise_rag.cli import _COMMANDS, main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_knows_commands_and_options(shell: str, capsys: Any) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in (*_COMMANDS, "watch", "max-tokens"))
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [("precise as", "ask"), ("precise index --wa", "--watch"), ("precise ask my", "my-index")],
)
def test_bash_completes(typed: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "my-index").mkdir()
    command = [sys.executable, "-m", "precise_rag", "completion", "bash"]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = typed.split()
    ask = f"""{script}
COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1} COMP_LINE='{typed}' COMP_POINT={len(typed)}
_shtab_precise
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    found = subprocess.run(
        ["bash", "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path, env=os.environ
    )
    assert found.stdout.split() == [expected]


@pytest.mark.parametrize(
    ("module", "command"),
    [("shtab", ["completion", "bash"]), ("watchfiles", ["index", "{folder}", "--out", "{out}", "--watch"])],
)
def test_without_the_extra_a_command_says_what_to_install_and_does_nothing(
    module: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    out = tmp_path / "index"

    code = main([part.format(folder=tmp_path, out=out) for part in command])

    printed = capsys.readouterr()
    assert code == 1
    assert printed.out == ""
    assert printed.err.splitlines() == [
        f"precise: {module!r} is not installed; run: pip install 'precise-rag[cli]'"
    ]
    assert not out.exists()
