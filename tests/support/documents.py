"""Documents that tests read, each a file of its own kind in tests/documents."""

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "documents"


def read_document(name: str) -> str:
    """The text of a file, with its line endings as they are."""
    return (_FOLDER / name).read_bytes().decode()


def read_cases(name: str, about: str) -> Any:
    """The cases of one test, as `parametrize` takes them, of a JSON file that holds those of several."""
    return json.loads(read_document(name))[about]
