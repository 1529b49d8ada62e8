"""The `precise` command, run as users run it: files in, lines and exit codes out."""

from functools import partial

import pytest

from precise_rag.cli import main
from support.commands import LAMP, command


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with documents in docs/, and with index/, made by the command itself."""
    folder = tmp_path_factory.mktemp("cli")
    docs = folder / "docs"
    docs.mkdir()
    (docs / "lamp.txt").write_text(LAMP)
    (docs / "empty.md").touch()
    assert main(["index", str(docs), "--out", str(folder / "index")]) == 0
    return folder


@pytest.fixture
def precise(capsys):
    """Runs one command; returns its exit code, standard output and standard error."""
    return partial(command, capsys)
