"""Tests that try to break things: each ends with the right result or one of our errors, never a hang."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from precise_rag.cli import demo, index
from precise_rag.index import dense, vectors
from support.children import at_most
from support.commands import ENCODER, LAMP, Result, command


@pytest.fixture(autouse=True)
def arrays_of_large_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the small indexes of the tests the arrays that only large ones have."""
    monkeypatch.setattr(dense, "EXACT_ROWS", 1)
    monkeypatch.setattr(vectors, "LEAST_ROWS", 1)


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """Fails a test that takes minutes, such as one that waits for a pipe."""
    with at_most(300):
        yield


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command with an encoder that needs no model; returns exit code, output and errors."""
    for module in (index, demo):
        monkeypatch.setattr(module, "load_encoder", lambda *_, **__: ENCODER)
    monkeypatch.setattr("precise_rag.index.load._encoder", lambda *_: ENCODER)
    return partial(command, capsys)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of documents."""
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "lamp.txt").write_text(LAMP)
    (folder / "sub" / "otter.txt").write_text("Otters sleep by the river. It floods in March.")
    return folder
