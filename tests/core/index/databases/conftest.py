"""A database for the tests of this folder, run for real."""

from collections.abc import Callable

import pytest


@pytest.fixture
def location(new_location: Callable[[], str]) -> str:
    """The location of a new collection."""
    return new_location()
