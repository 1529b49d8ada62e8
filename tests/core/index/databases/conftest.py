"""Databases for the tests of this folder, each run for real."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.databases import ENGINES, new_location


@pytest.fixture(params=ENGINES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes locations of new collections, in each kind of database."""
    return new_location(request.param, request, tmp_path)
