"""Facts about the machine and its libraries."""

import json

from precise_rag.evaluation import circumstances, peak_mb, resident_mb
from precise_rag.evaluation.runs.environment import installed_version


def test_circumstances_are_plain_values() -> None:
    made = json.loads(json.dumps(circumstances(7)))
    assert made["seed"] == 7
    assert made["libraries"]["numpy"] == installed_version("numpy")
    assert "a-library-that-nobody-wrote" not in made["libraries"]


def test_an_absent_library_has_no_version() -> None:
    assert installed_version("a-library-that-nobody-wrote") == ""


def test_memory_is_in_megabytes() -> None:
    now = resident_mb()
    assert now is None or 1 < now < 1_000_000
    assert peak_mb() > 1
