"""Filters as conditions of LanceDB on the columns of a row."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from precise_rag.filters import Condition, Filter
from precise_rag.filters.values import ID, sortable
from precise_rag.index.databases.facets import SIGNS, field_label, item_label, value_label


class _Joined(NamedTuple):
    """SQL of conditions. has_or: whether an OR is outside parentheses; an AND beside it binds closer."""

    sql: str
    has_or: bool


def where_clause(wanted: Filter) -> str:
    """The condition that a filter means, with few parentheses: LanceDB reads about 40 levels of them."""
    return f"({wanted.fold(lambda condition: _Joined(_clause(condition), False), _all, _any).sql})"


def _all(parts: Sequence[_Joined]) -> _Joined:
    return _Joined(" AND ".join(f"({p.sql})" if p.has_or else p.sql for p in parts) or "true", False)


def _any(parts: Sequence[_Joined]) -> _Joined:
    has_or = len(parts) > 1 or any(part.has_or for part in parts)
    return _Joined(" OR ".join(part.sql for part in parts) or "false", has_or)


def has_field(field: str) -> str:
    """The condition that a document has a field."""
    return f"array_has_any(facets, [{text(field_label(field))}])"


def text(value: str) -> str:
    """A string as SQL."""
    return "'" + value.replace("'", "''") + "'"


def listed(values: Iterable[str]) -> str:
    """Strings as a list of SQL."""
    return f"({', '.join(map(text, values)) or 'NULL'})"


def _clause(condition: Condition) -> str:
    is_id = condition.field == ID
    present = "true" if is_id else has_field(condition.field)
    if condition.operator == "$exists":
        return f"(NOT {present})" if condition.negated else present
    holds = _of_id(condition) if is_id else _of_field(condition)
    if not condition.negated:
        return holds  # no NOT stands before it, so null does as well as false; the index knows no coalesce
    may_be_null = not is_id and condition.operator not in ("$eq", "$in")
    return f"({present} AND NOT {f'coalesce({holds}, false)' if may_be_null else holds})"


def _of_id(condition: Condition) -> str:
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        return "false"
    if condition.operator in SIGNS:
        return f"(doc_id {SIGNS[condition.operator]} {text(texts[0])})"
    return (
        f"contains(doc_id, {text(texts[0])})"
        if condition.operator == "$contains"
        else f"(doc_id IN {listed(texts)})"
    )


def _of_field(condition: Condition) -> str:
    field, value = condition.field, condition.value
    string = f"json_get_string(compared, {text(f'text {field}')})"
    if condition.operator in SIGNS:
        sign = SIGNS[condition.operator]
        if isinstance(value, str):
            return f"({string} {sign} {text(value)})"
        assert isinstance(value, int | float)
        return f"(json_get_string(compared, {text(f'number {field}')}) {sign} {text(sortable(value))})"
    if condition.operator == "$contains":
        listed = f"array_has_any(facets, [{text(item_label(field, value))}])"
        return f"({listed} OR contains({string}, {text(value)}))" if isinstance(value, str) else listed
    values = value if isinstance(value, tuple) else (value,)
    if not values:
        return "false"
    looked_up = ", ".join(text(value_label(field, item)) for item in values)
    return f"array_has_any(facets, [{looked_up}])"
