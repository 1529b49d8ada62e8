"""What filters compare: fields of the metadata, and their values in the one form that all indexes use."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from precise_rag.types import Document, finite_score

Value = str | int | float | bool
"""What a field can be compared with."""
GIVEN = str | int | float | np.integer | np.floating | np.bool_
"""The classes of values as they are given; `canonical` makes a Value of each."""
RESERVED = "$"
"""Names of operators and of the document's id begin so; no field of the metadata does."""
ID = "$id"
"""The name of the document's id."""
OTHER: Mapping[str, Any] = {}
"""Stands for a value that no condition can have, such as NaN: the field is there, but equals nothing."""


def is_value(value: object) -> bool:
    """Whether a condition can have a value: text, a truth value, or a number in the range of a float."""
    if isinstance(value, str):
        return is_text(value)
    return isinstance(value, GIVEN) and finite_score(value) is not None


def is_text(text: str) -> bool:
    """Whether every store can hold a string: it has no NUL and no half of a character."""
    return "\0" not in text and not has_half_character(text)


def has_half_character(text: str) -> bool:
    """Whether a string holds a lone surrogate, which UTF-8 cannot write."""
    return re.search("[\ud800-\udfff]", text) is not None


def compared(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the metadata that filters can ask for, with their `comparable` values."""
    asked = (name for name in metadata if name and not name.startswith(RESERVED) and is_text(name))
    values = {name: comparable(metadata[name]) for name in asked}
    return {name: value for name, value in values.items() if value is not None}


def comparable(value: object) -> Any:
    """A value of the metadata as filters compare it: a Value, a list of them, or OTHER; None if absent."""
    if isinstance(value, list | tuple | set | frozenset):
        return [canonical(item) for item in value if is_value(item)] if value else None
    if value is None:
        return None
    return canonical(value) if is_value(value) else OTHER


def canonical(value: Any) -> Any:
    """A Value in the one way in which equal values are written: a whole number as an int."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool):
        return str.__str__(value) if isinstance(value, str) else value
    return int(value) if int(value) == value else float(value)


def field_value(document: Document, field: str) -> object:
    """The value of a document's field as filters compare it, or its id for "$id"; None if it has none."""
    return canonical(document.id) if field == ID else comparable(document.metadata.get(field))
