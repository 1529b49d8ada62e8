"""Filters as Python objects.

    (Field("tenant") == "acme") & (Field("year") >= 2020) & ~Field("old").exists()

A condition on a field that a document does not have is never met, whether it asks for a value or for
another one; only `{"$exists": false}` asks for its absence. None and an empty list count as absent. Numbers
are compared with numbers, strings with strings by code points, and truth values with truth values; other
pairs do not match; members of a StrEnum and values of numpy are the strings, numbers and truth values that
they hold. Numbers are compared exactly, whatever their size. A value that no condition can have,
such as NaN, an object, or a string with the character NUL, is there but equals nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import eq, ge, gt, le, lt
from typing import Any, Literal, TypeVar

from precise_rag.checks import items_of, shown
from precise_rag.errors import InputError
from precise_rag.filters.values import GIVEN, ID, RESERVED, Value, canonical, field_value, is_text, is_value
from precise_rag.types import Document

Operator = Literal["$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$contains", "$exists"]
"""How a condition compares a field.

$eq: the field has this value.
$gt, $gte, $lt, $lte: it is greater, or less, than this number or string.
$in: it has one of these values.
$contains: it is a list with this value, or a string with this string in it.
$exists: the document has the field; the value is always True.
"""
NEGATIONS: Mapping[str, Operator] = {"$ne": "$eq", "$nin": "$in"}
"""Names of the negated operators in the plain form."""
MAX_DEPTH = 50
"""Most groups that may stand in each other."""
_T = TypeVar("_T")


class Filter(ABC):
    """A condition on documents; combine filters by `&`, `|` and `~`. Immutable, and can be hashed."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Raise InputError: `and`, `or`, `not` and `1 < Field("a") < 3` would lose a condition."""
        raise InputError("filter: combine conditions by &, | and ~, each in brackets, not by and, or and not")

    def fold(
        self,
        condition: Callable[[Condition], _T],
        all_of: Callable[[Sequence[_T]], _T],
        any_of: Callable[[Sequence[_T]], _T],
    ) -> _T:
        """Build a value from the conditions upward, for example a clause of a query language.

        condition: makes the value of one condition.
        all_of, any_of: make one value of those that must all be met, or of which one must; the list may
            be empty: all of nothing is met, any of nothing is not.
        """
        if isinstance(self, Condition):
            return condition(self)
        assert isinstance(self, _Group)
        parts = [part.fold(condition, all_of, any_of) for part in self.parts]
        return all_of(parts) if isinstance(self, AllOf) else any_of(parts)

    @abstractmethod
    def __invert__(self) -> Filter: ...

    def __and__(self, other: Filter) -> Filter:
        return AllOf((*_parts_of(self, AllOf), *_parts_of(other, AllOf)))

    def __or__(self, other: Filter) -> Filter:
        return AnyOf((*_parts_of(self, AnyOf), *_parts_of(other, AnyOf)))

    def matches(self, document: Document) -> bool:
        """Whether a document meets the filter."""
        return self.fold(lambda c: c.holds(field_value(document, c.field)), all, any)

    def conditions(self) -> tuple[Condition, ...]:
        """All conditions in the filter, in order."""
        return self.fold(lambda c: (c,), _joined, _joined)


@dataclass(frozen=True, slots=True, eq=False)
class Condition(Filter):
    """A condition on one field.

    field: name of the field in the metadata; "$id" for the document's id.
    operator: see `Operator`.
    value: a Value; a tuple of them for "$in", True for "$exists".
    negated: whether the field must exist but not compare so; with "$exists", whether it must not exist.
    Raises InputError if the value does not fit the operator.
    """

    field: str
    operator: Operator
    value: Value | tuple[Value, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.field, str) or not self.field:
            raise InputError(f"filter: a field must be a non-empty string, got {shown(self.field)}")
        _check_text(f"filter: the field {shown(self.field)}", self.field)
        if self.field.startswith(RESERVED) and self.field != ID:
            known = "'$and', '$or', '$not', '$id' or a field's name"
            raise InputError(f"filter: unknown operator {self.field!r}; use {known}")
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        if isinstance(self.value, tuple) and self.operator != "$in":
            raise InputError(f"filter: {self.operator} of {self.field!r} takes one value, $in takes several")
        for value in values:
            _check_value(self.field, self.operator, value)
        object.__setattr__(self, "field", canonical(self.field))
        plain = tuple(map(canonical, values))
        object.__setattr__(self, "value", plain if isinstance(self.value, tuple) else plain[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        """What makes it this condition; True is not 1 here."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return self.field, self.operator, self.negated, tuple((_kind(value), value) for value in values)

    def __invert__(self) -> Condition:
        return replace(self, negated=not self.negated)

    def holds(self, value: object) -> bool:
        """Whether the condition is met by a field's value; None if the field is missing."""
        if self.operator == "$exists":
            return (value is None) == self.negated
        return value is not None and _COMPARE[self.operator](value, self.value) != self.negated


@dataclass(frozen=True, slots=True)
class _Group(Filter):
    """Filters that are combined; a group may stand in another one, MAX_DEPTH deep at the most."""

    parts: tuple[Filter, ...]
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = 1 + max((part.depth for part in self.parts if isinstance(part, _Group)), default=0)
        if depth > MAX_DEPTH:
            raise InputError(f"filter: it is nested more than {MAX_DEPTH} deep")
        object.__setattr__(self, "depth", depth)

    def __invert__(self) -> Filter:
        parts = tuple(~part for part in self.parts)
        return AnyOf(parts) if isinstance(self, AllOf) else AllOf(parts)


class AllOf(_Group):
    """Met if all its parts are; also if it has none."""

    __slots__ = ()


class AnyOf(_Group):
    """Met if one of its parts is; never if it has none."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """A field of the metadata; its comparisons with a value are filters.

    name: name of the field, as it is in the metadata; "$id" for the document's id.
    """

    name: str

    def __eq__(self, value: Value) -> Condition:  # type: ignore[override]
        return Condition(self.name, "$eq", value)

    def __ne__(self, value: Value) -> Condition:  # type: ignore[override]
        return ~(self == value)

    def __gt__(self, value: Value) -> Condition:
        return Condition(self.name, "$gt", value)

    def __ge__(self, value: Value) -> Condition:
        return Condition(self.name, "$gte", value)

    def __lt__(self, value: Value) -> Condition:
        return Condition(self.name, "$lt", value)

    def __le__(self, value: Value) -> Condition:
        return Condition(self.name, "$lte", value)

    def __hash__(self) -> int:
        return hash(self.name)

    def is_in(self, values: Iterable[Value]) -> Condition:
        """Whether the field has one of these values; `~` for none of them."""
        return Condition(self.name, "$in", tuple(items_of("values", values, object)))

    def contains(self, value: Value) -> Condition:
        """Whether the field is a list with this value, or a string with this string in it."""
        return Condition(self.name, "$contains", value)

    def exists(self) -> Condition:
        """Whether the document has the field."""
        return Condition(self.name, "$exists", True)


def _parts_of(given: Filter, kind: type[AllOf] | type[AnyOf]) -> tuple[Filter, ...]:
    """The parts of a filter of this kind, so that a chain of `&` or `|` stays flat; else the filter."""
    return given.parts if isinstance(given, kind) else (given,)


def _joined(parts: Sequence[tuple[Condition, ...]]) -> tuple[Condition, ...]:
    return tuple(condition for part in parts for condition in part)


def _kind(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else type(value).__name__


def _of_one_kind(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, wanted: _kind(value) == _kind(wanted) and compare(value, wanted)


_equal = _of_one_kind(eq)


def _contains(value: object, wanted: object) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    return isinstance(value, list | tuple | set | frozenset) and any(_equal(item, wanted) for item in value)


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": _equal,
    "$gt": _of_one_kind(gt),
    "$gte": _of_one_kind(ge),
    "$lt": _of_one_kind(lt),
    "$lte": _of_one_kind(le),
    "$in": lambda value, wanted: any(_equal(value, item) for item in wanted),
    "$contains": _contains,
}


def _check_value(field: str, operator: str, value: object) -> None:
    where = f"filter: {operator} of {field!r}"
    if value is None:
        raise InputError(f"{where} cannot be None; for a missing field use {{'$exists': False}}")
    if not isinstance(value, GIVEN):
        hint = "; use $in for one of several values" if isinstance(value, list | tuple | set) else ""
        raise InputError(f"{where} must be a string, a number or a truth value, got {shown(value)}{hint}")
    if isinstance(value, str):
        _check_text(where, value)
    elif not is_value(value):
        raise InputError(f"{where} must be a finite number, got {shown(value)}")
    if operator in ("$gt", "$gte", "$lt", "$lte") and isinstance(canonical(value), bool):
        raise InputError(f"{where} must be a number or a string, got {value}")


def _check_text(where: str, text: str) -> None:
    if not is_text(text):
        raise InputError(f"{where} must not hold NUL, nor half of a character (a lone surrogate)")
