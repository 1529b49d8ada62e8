"""Filters as conditions of Qdrant on the payload of a row."""

from collections.abc import Sequence
from typing import Any

from precise_rag._extras import require
from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.filters import Condition, Filter
from precise_rag.filters.values import ID, sortable
from precise_rag.index.databases.facets import SIGNS, field_label, item_label, value_label
from precise_rag.index.databases.qdrant.points import (
    LEVEL_BYTES,
    LEVELS,
    level_field,
    number_field,
    string_levels,
    text_field,
)


def qdrant_filter(wanted: Filter) -> Any:
    """The filter of Qdrant that a filter means."""
    return wanted.fold(_clause, all_of, any_of)


def all_of(parts: Sequence[Any]) -> Any:
    """What meets all parts."""
    return _models().Filter(must=list(parts))


def any_of(parts: Sequence[Any]) -> Any:
    """What meets one of the parts; nothing, if there is none."""
    return _models().Filter(should=list(parts)) if parts else _nothing()


def none_of(parts: Sequence[Any]) -> Any:
    """What meets none of the parts."""
    return _models().Filter(must_not=list(parts))


def one_of(key: str, values: Sequence[str | int]) -> Any:
    """A field that has, or a list that holds, one of some values."""
    return _condition(key, match=_models().MatchAny(any=list(values)))


def ranged(key: str, **bounds: float) -> Any:
    """A field with a number within bounds: gt, gte, lt, lte."""
    return _condition(key, range=_models().Range(**bounds))


def has_field(field: str) -> Any:
    """Documents that have a field."""
    return one_of("facets", [field_label(field)])


def _models() -> Any:
    return require("qdrant_client.models", extra="qdrant")


def _condition(key: str, **how: Any) -> Any:
    return _models().FieldCondition(key=key, **how)


def _nothing() -> Any:
    return _models().HasIdCondition(has_id=[])


def _clause(condition: Condition) -> Any:
    is_id = condition.field == ID
    present = all_of([]) if is_id else has_field(condition.field)
    if condition.operator == "$exists":
        return none_of([present]) if condition.negated else present
    holds = _of_id(condition) if is_id else _of_field(condition)
    return all_of([present, none_of([holds])]) if condition.negated else holds


def _of_id(condition: Condition) -> Any:
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        return _nothing()
    if condition.operator in SIGNS:
        return _ordered(ID, condition.operator, texts[0], shown(texts[0]))
    if condition.operator == "$contains":
        return _inside("doc_id", texts[0])
    return one_of("doc_id", texts)


def _of_field(condition: Condition) -> Any:
    field, value = condition.field, condition.value
    if condition.operator in SIGNS:
        if isinstance(value, str):
            return _ordered(field, condition.operator, value, shown(value))
        assert isinstance(value, int | float)
        return _ordered(number_field(field), condition.operator, sortable(value), shown(value))
    if condition.operator == "$contains":
        listed = one_of("facets", [item_label(field, value)])
        return any_of([listed, _inside(text_field(field), value)]) if isinstance(value, str) else listed
    values = value if isinstance(value, tuple) else (value,)
    return one_of("facets", [value_label(field, item) for item in values]) if values else _nothing()


def _inside(key: str, part: str) -> Any:
    """A string with a string in it; every string has the empty one."""
    if not part:
        return none_of([_models().IsEmptyCondition(is_empty=_models().PayloadField(key=key))])
    return _condition(key, match=_models().MatchSubstring(substring=part))


def _ordered(field: str, operator: str, value: str, given: str) -> Any:
    """A string before or after a value; see `string_levels`. given: the value as a message shows it."""
    most = LEVELS * LEVEL_BYTES
    if len(value.encode()) > most:
        raise InputError(
            f"filter: {operator} in Qdrant takes a string of at most {most} bytes, or a number of at most "
            f"{most - 5} digits, got {given}"
        )
    levels, sign = string_levels(value), operator[1:]
    parts = []
    for level, number in enumerate(levels):
        is_last = level == len(levels) - 1
        bound = ranged(level_field(field, level), **{sign if is_last else sign[:2]: number})
        same = [
            _condition(level_field(field, i), match=_models().MatchValue(value=levels[i]))
            for i in range(level)
        ]
        parts.append(all_of([*same, bound]))
    return any_of(parts)
