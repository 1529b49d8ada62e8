"""Filters as expressions of Milvus on the fields of a row.

A comparison with a field that is not there is neither true nor false; so each asks first whether it is there.
"""

from collections.abc import Iterable

from precise_rag.filters import Condition, Filter
from precise_rag.filters.values import ID, sortable
from precise_rag.index.databases.facets import (
    field_label,
    hashed,
    item_label,
    number_label,
    text_label,
    value_label,
)
from precise_rag.index.databases.milvus.entities import (
    literal,
    number_field,
    quoted,
    searched_field,
    text_field,
    without_wildcards,
)

_COMPARED = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_ALL, _NONE = "(place >= 0)", "(place < 0)"


def expression(wanted: Filter) -> str:
    """The expression that a filter means."""
    return wanted.fold(
        _clause,
        lambda parts: f"({' and '.join(parts)})" if parts else _ALL,
        lambda parts: f"({' or '.join(parts)})" if parts else _NONE,
    )


def has_field(field: str) -> str:
    """Documents that have a field."""
    return _has_label([field_label(field)])


def _has_label(labels: Iterable[str]) -> str:
    return f"array_contains_any(facets, {quoted(map(hashed, labels))})"


def _clause(condition: Condition) -> str:
    present = _ALL if condition.field == ID else has_field(condition.field)
    if condition.operator == "$exists":
        return f"(not {present})" if condition.negated else present
    holds = _of_id(condition) if condition.field == ID else _of_field(condition)
    return f"({present} and not {holds})" if condition.negated else holds


def _of_id(condition: Condition) -> str:
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        return _NONE
    if condition.operator in _COMPARED:
        return f"(doc_id {_COMPARED[condition.operator]} {literal(texts[0])})"
    if condition.operator == "$contains":
        return _inside(ID, texts[0])
    return f"(doc_id in {quoted(texts)})"


def _of_field(condition: Condition) -> str:
    field, value = condition.field, condition.value
    text, is_text = f'fields["{text_field(field)}"]', _has_label([text_label(field)])
    if condition.operator in _COMPARED:
        sign = _COMPARED[condition.operator]
        if isinstance(value, str):
            return f"({is_text} and {text} {sign} {literal(value)})"
        assert isinstance(value, int | float)
        is_number = _has_label([number_label(field)])
        return f'({is_number} and fields["{number_field(field)}"] {sign} {literal(sortable(value))})'
    if condition.operator == "$contains":
        listed = _has_label([item_label(field, value)])
        if not isinstance(value, str):
            return listed
        return f"({listed} or ({is_text} and {_inside(field, value)}))"
    values = value if isinstance(value, tuple) else (value,)
    return _has_label(value_label(field, item) for item in values) if values else _NONE


def _inside(field: str, part: str) -> str:
    """A string with a string in it."""
    return f'(fields["{searched_field(field)}"] like {literal(f"%{without_wildcards(part)}%")})'
