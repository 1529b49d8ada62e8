"""Metadata in the form in which engines index and compare them.

labels           texts that name a field, a value of a field, or an item of a list: `$eq`, `$in`, `$exists`
                 and `$contains` of a list look them up
numbers, texts   by the names of the fields: for ranges and for parts of strings

No label, and no field of these, can be spelled as one of the document's id: see `is_field`.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from precise_rag.filters.values import canonical, compared, is_value, sortable

SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
"""The operators that compare by order, and their signs in SQL."""


def labels(metadata: Mapping[str, Any]) -> list[str]:
    """The labels of all fields and their values, sorted."""
    made = set[str]()
    for field, value in compared(metadata).items():
        made.add(field_label(field))
        if isinstance(value, list):
            made.update(item_label(field, item) for item in value)
        elif is_value(value):
            made.add(value_label(field, value))
    return sorted(made)


def field_label(field: str) -> str:
    """The label of documents that have a field."""
    return json.dumps([field])


def value_label(field: str, value: object) -> str:
    """The label of documents whose field has a value."""
    return json.dumps([field, canonical(value)])


def item_label(field: str, value: object) -> str:
    """The label of documents whose field is a list with a value."""
    return json.dumps([field, [canonical(value)]])


def numbers(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The fields that have a number, each as `sortable` text: engines compare numbers as floats."""
    return {
        field: sortable(value)
        for field, value in compared(metadata).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def texts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The fields that have a string."""
    return {field: value for field, value in compared(metadata).items() if isinstance(value, str)}


def hashed(text: str) -> str:
    """A short name of a label or a field, of letters and digits only."""
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
