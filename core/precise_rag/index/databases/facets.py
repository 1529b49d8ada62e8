"""Metadata in the form in which engines index and compare them.

labels           texts that name a field, a value of a field, or an item of a list: `$eq`, `$in`, `$exists`
                 and `$contains` of a list look them up
numbers, texts   by the names of the fields: for ranges and for parts of strings
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from precise_rag.types import finite_score


def filterable(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that filters can compare: scalars and lists of them; None and empty lists are left out.

    A value that no condition can have, such as NaN, becomes {}: the field is there, but equal to nothing.
    """
    found: dict[str, Any] = {}
    for name, value in metadata.items():
        if isinstance(value, list | tuple):
            items = [item for item in value if _is_comparable(item)]
            if value:
                found[name] = items
        elif _is_comparable(value):
            found[name] = value
        elif value is not None:
            found[name] = {}
    return found


def labels(metadata: Mapping[str, Any]) -> list[str]:
    """The labels of all fields and their values, sorted."""
    found = set[str]()
    for field, value in filterable(metadata).items():
        found.add(field_label(field))
        if isinstance(value, list):
            found.update(item_label(field, item) for item in value)
        elif not isinstance(value, dict):
            found.add(value_label(field, value))
    return sorted(found)


def field_label(field: str) -> str:
    """The label of documents that have a field."""
    return json.dumps([field])


def value_label(field: str, value: object) -> str:
    """The label of documents whose field has a value."""
    return json.dumps([field, _canonical(value)])


def item_label(field: str, value: object) -> str:
    """The label of documents whose field is a list with a value."""
    return json.dumps([field, [_canonical(value)]])


def number_label(field: str) -> str:
    """The label of documents whose field is a number; `labels` has none of these."""
    return json.dumps([field, {"is": "number"}])


def text_label(field: str) -> str:
    """The label of documents whose field is a string; `labels` has none of these."""
    return json.dumps([field, {"is": "text"}])


def numbers(metadata: Mapping[str, Any]) -> dict[str, float]:
    """The fields that have a number."""
    return {
        field: float(value)
        for field, value in filterable(metadata).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def texts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The fields that have a string."""
    return {field: value for field, value in filterable(metadata).items() if isinstance(value, str)}


def _is_comparable(value: object) -> bool:
    return isinstance(value, str) or finite_score(value) is not None


def _canonical(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def hashed(text: str) -> str:
    """A short name of a label or a field, of letters and digits only."""
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
