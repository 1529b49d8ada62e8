"""Filters as plain data, which is also the form of LangChain and MongoDB.

    {"tenant": "acme", "year": {"$gte": 2020}, "$or": [{"tags": {"$contains": "tax"}}, {"$id": "a.md"}]}

All names in a mapping must be met. A field has a value, or a mapping of operators to values.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from precise_rag.checks import without_repeats
from precise_rag.errors import InputError
from precise_rag.filters.conditions import MAX_DEPTH, NEGATIONS, AllOf, AnyOf, Condition, Filter
from precise_rag.filters.values import Value

COMPARISONS = "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains"
_OPERATORS = (*COMPARISONS, "$exists", "$not")


def as_filter(given: Filter | Mapping[str, Any]) -> Filter:
    """Return a filter from its plain form, see the module; a Filter is returned as it is.

    An empty mapping is met by every document. Raises InputError if the form is not valid.
    """
    if isinstance(given, Filter):
        return given
    if not isinstance(given, Mapping):
        wanted = "a Filter or a mapping like {'year': {'$gte': 2020}}"
        raise InputError(f"filter: must be {wanted}, got {type(given).__name__}")
    try:
        parts = [part for name, value in given.items() for part in _parts(name, value)]
    except RecursionError:
        raise InputError(f"filter: it is nested more than {MAX_DEPTH} deep") from None
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _parts(name: object, value: Any) -> list[Filter]:
    if name == "$not":
        return [~as_filter(value)]
    if name in ("$and", "$or"):
        if not isinstance(value, list | tuple):
            raise InputError(f"filter: {name} takes a list of filters, got {type(value).__name__}")
        parts = tuple(as_filter(part) for part in value)
        return [AllOf(parts) if name == "$and" else AnyOf(parts)]
    field: Any = name
    if not isinstance(value, Mapping):
        return [Condition(field, "$eq", value)]
    if not value:
        raise InputError(f"filter: the field {field!r} has no condition, for example {{'$eq': 3}}")
    return [_comparison(field, operator, wanted) for operator, wanted in value.items()]


def _comparison(field: Any, operator: object, value: Any) -> Filter:
    if operator not in _OPERATORS:
        known = ", ".join(_OPERATORS)
        raise InputError(f"filter: unknown operator {operator!r} of {field!r}; the operators are {known}")
    if operator == "$not":
        return ~as_filter({field: value})
    if operator == "$exists":
        if not isinstance(value, bool):
            raise InputError(f"filter: $exists of {field!r} must be True or False, got {value!r}")
        return Condition(field, "$exists", True, negated=not value)
    if operator in ("$in", "$nin"):
        if not isinstance(value, list | tuple | set | frozenset):
            raise InputError(f"filter: {operator} of {field!r} takes a list of values, got {value!r}")
        value = tuple(value)
    plain: Any = NEGATIONS.get(str(operator), operator)
    return Condition(field, plain, value, negated=operator in NEGATIONS)


def parse_assignments(texts: Iterable[str]) -> Filter | None:
    """Return a filter from texts such as "year=2020" or "tenant=acme", which must all hold; None for none.

    A value that is a JSON number or truth value is that value, or the same as a string, as CSV has it; one in
    quotes is a string. The same name in two texts means one of the two values. A text or value that begins
    with "{" is a filter in JSON.
    Raises InputError for any other text.
    """
    values: dict[str, list[Value]] = {}
    parts: list[Filter] = []
    for text in texts:
        name, equals, value = text.partition("=")
        is_json = text.lstrip().startswith("{")
        if is_json or value.lstrip().startswith("{"):
            written = text if is_json else f"{{{json.dumps(name)}: {value}}}"
            try:
                parts.append(as_filter(json.loads(written, object_pairs_hook=without_repeats)))
            except (ValueError, RecursionError) as error:
                raise InputError(f"filter {text!r} is not valid: {error}") from error
            continue
        if not (name and equals):
            example = '{"year": {"$gte": 2020}}'
            raise InputError(f"filter {text!r} must be FIELD=VALUE, or JSON like {example!r}")
        values.setdefault(name, []).extend(_plain_values(value))
    parts += [Condition(name, "$in", tuple(wanted)) for name, wanted in values.items()]
    return None if not parts else parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _plain_values(text: str) -> list[Value]:
    try:
        value = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return [text]
    is_number = isinstance(value, int | float) and abs(value) < math.inf
    return [value] if isinstance(value, str) else [value, text] if is_number else [text]
