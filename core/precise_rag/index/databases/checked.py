"""What is read from a database, checked before it is used: other programs can write there, too.

A value that this library might have written is believed. Any other one is a `DamagedRowError` that names its
column, which `readable` turns into an IndexFormatError that names the collection.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from precise_rag.errors import IndexFormatError
from precise_rag.index.arrays.forms import check_numbers, ensure
from precise_rag.types import IntArray


class DamagedRowError(Exception):
    """A column holds a value that this library does not write. what: "holds …", for the message."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(f"the column {column!r} {what}")


@contextmanager
def readable(location: str) -> Iterator[None]:
    """Raise IndexFormatError in place of DamagedRowError. location: of the collection."""
    try:
        yield
    except DamagedRowError as error:
        raise IndexFormatError(
            f"{location}: {error}; another program has changed or damaged it: restore the collection from a "
            "backup, or build it again"
        ) from error


@contextmanager
def reading(column: str) -> Iterator[None]:
    """Raise DamagedRowError if the value of a column cannot be read as what it is to be."""
    try:
        yield
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise DamagedRowError(column, f"holds what cannot be read ({error})") from error


def json_object(column: str, text: Any) -> dict[str, Any]:
    """The JSON object in a column. Raises DamagedRowError if it holds none."""
    with reading(column):
        value: dict[str, Any] = json.loads(text)
        ensure(isinstance(value, dict), "no JSON object")
    return value


def whole_numbers(column: str, values: Iterable[Any], least: int = 0, limit: int = 2**31) -> IntArray:
    """(n,) whole numbers of a column. Raises DamagedRowError unless all are in the range."""
    with reading(column):
        listed = list(values)
        ensure(all(type(value) is int for value in listed), "no whole number")
        numbers = np.array(listed, dtype=np.int64)
        check_numbers(column, numbers, least, limit)
    return numbers


def texts(column: str, values: Iterable[Any]) -> Sequence[str]:
    """The texts in a column. Raises DamagedRowError if one is something else."""
    listed = list(values)
    with reading(column):
        ensure(all(isinstance(value, str) for value in listed), "no text")
    return listed
