"""Tests that try to break things: each ends with the right result or one of our errors, never a hang."""

import signal
from collections.abc import Iterator

import pytest

from precise_rag.index.arrays import rough
from precise_rag.index.rows import nearest

_SECONDS = 300


@pytest.fixture(autouse=True)
def arrays_of_large_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the small indexes of the tests the arrays that only large ones have."""
    monkeypatch.setattr(nearest, "EXACT_ROWS", 1)
    monkeypatch.setattr(rough, "LEAST_ROWS", 1)


@pytest.fixture(autouse=True)
def no_hang(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that takes minutes, such as one that waits for a pipe."""
    if not hasattr(signal, "SIGALRM") or request.node.get_closest_marker("torture"):
        yield
        return

    def stop(*_: object) -> None:
        raise AssertionError(f"still running after {_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
