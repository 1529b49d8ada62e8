"""Data of this package: files beside the modules that read them."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def packaged_text(path: str) -> str:
    """Return the text of a file of this package, such as "trace/page.css"."""
    return files("precise_rag").joinpath(path).read_text("utf-8")


def packaged_toml(path: str) -> dict[str, Any]:
    """Return the content of a TOML file of this package."""
    return tomllib.loads(packaged_text(path))


def by_word(table: Mapping[str, str]) -> dict[str, Any]:
    """Return the key of each word in the values of a table."""
    return {word: key for key, words in table.items() for word in words.split()}
