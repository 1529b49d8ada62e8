"""Filters as conditions of PostgreSQL on the columns `id` and `fields` of a document `d`."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from precise_rag.filters import Condition, Filter
from precise_rag.filters.values import ID, canonical

Clause = tuple[str, list[Any]]
"""SQL, and the values of its placeholders."""
_SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_FEW = 20
"""Values up to which `$in` looks up each of them in the index of the fields."""
unescaped_json = partial(json.dumps, ensure_ascii=False)
"""JSON with its characters as they are: a database without an encoding has none for escapes."""


def where_clause(wanted: Filter) -> Clause:
    """The condition that a filter means."""
    both, either = partial(_combined, "AND", "true"), partial(_combined, "OR", "false")
    clause: Clause = wanted.fold(_clause, both, either)
    return clause


def _combined(word: str, nothing: str, parts: Sequence[Clause]) -> Clause:
    if not parts:
        return nothing, []
    return f"({f' {word} '.join(sql for sql, _ in parts)})", [one for _, values in parts for one in values]


def _clause(condition: Condition) -> Clause:
    is_id = condition.field == ID
    present: Clause = ("true", []) if is_id else ("d.fields ? %s", [condition.field])
    if condition.operator == "$exists":
        return (f"NOT {present[0]}" if condition.negated else present[0]), present[1]
    sql, values = _of_id(condition) if is_id else _of_field(condition)
    if condition.negated:
        return f"({present[0]} AND NOT coalesce({sql}, false))", [*present[1], *values]
    return sql, values  # no NOT stands before it, so null does as well as false


def _of_id(condition: Condition) -> Clause:
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        return "false", []
    if condition.operator in _SIGNS:
        return f"d.id {_SIGNS[condition.operator]} %s", [texts[0]]
    if condition.operator == "$contains":
        return "position(%s in d.id) > 0", [texts[0]]
    return "d.id = ANY(%s)", [texts]


def _of_field(condition: Condition) -> Clause:
    field, value = condition.field, condition.value
    if condition.operator in _SIGNS:
        sign = _SIGNS[condition.operator]
        if isinstance(value, str):
            return _typed("string", field, f'(d.fields->>%s) COLLATE "C" {sign} %s', field, value)
        number = str(canonical(value))  # as a number it would be a float, and compared as one
        return _typed("number", field, f"(d.fields->>%s)::numeric {sign} %s::numeric", field, number)
    if condition.operator == "$contains":
        listed, values = "d.fields @> %s::jsonb", [unescaped_json({field: [canonical(value)]})]
        if not isinstance(value, str):
            return listed, values
        inside, more = _typed("string", field, "position(%s in d.fields->>%s) > 0", value, field)
        return f"({listed} OR {inside})", [*values, *more]
    wanted = [canonical(item) for item in (value if isinstance(value, tuple) else (value,))]
    if len(wanted) > _FEW:
        return "d.fields->%s = ANY(%s::jsonb[])", [field, [unescaped_json(item) for item in wanted]]
    parts: list[Clause] = [("d.fields @> %s::jsonb", [unescaped_json({field: item})]) for item in wanted]
    return _combined("OR", "false", parts)


def _typed(kind: str, field: str, sql: str, *values: Any) -> Clause:
    """A condition that is evaluated only where a field has this type."""
    return f"CASE WHEN jsonb_typeof(d.fields->%s) = '{kind}' THEN {sql} END", [field, *values]
