"""Documents that tests read, each a file of its own kind in tests/documents."""

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "documents"


def read_document(name: str) -> str:
    """The text of a file, with its line endings as they are."""
    return (_FOLDER / name).read_bytes().decode()
