"""Locations in databases that run in the tests."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

ENGINES = ("lance", "postgres", "qdrant")
_NUMBERS = itertools.count()


def new_location(engine: str, request: pytest.FixtureRequest, folder: Path) -> Callable[[], str]:
    """Makes locations, each of another collection, in a database of a kind."""
    if engine == "lance":
        pytest.importorskip("lancedb")
        return lambda: str(folder / f"{next(_NUMBERS)}.lance")
    if engine == "qdrant":
        pytest.importorskip("qdrant_client")
        return lambda: f"qdrant::memory:?collection=test_{next(_NUMBERS)}"
    server: str = request.getfixturevalue(engine)
    joined = "&" if "?" in server else "?"
    return lambda: f"{server}{joined}collection=test_{next(_NUMBERS)}"
