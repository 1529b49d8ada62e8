"""Checks of what users pass: numbers, texts, paths, lists and objects with methods."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from precise_rag.errors import InputError, PreciseRagError

T = TypeVar("T")
_SHOWN = 60


def check_number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    above_zero: bool = False,
    most: float = math.inf,
    whole: bool = False,
    none: str | None = None,
) -> None:
    """Raise InputError unless `value` is a finite number in the range.

    name: what the number is, for the message. none: what None means, if it is allowed.
    """
    if value is None and none is not None:
        return
    is_number = _is_number(value, whole)
    if is_number and least <= value <= most and (value > 0 or not above_zero):
        return
    rule = _range(least, above_zero, most)
    if not is_number:
        rule = f"a {'whole' if whole else 'finite'} number{', ' if rule else ''}{rule}"
    raise InputError(f"{name} must be {rule}{f', or None for {none}' if none else ''}, got {shown(value)}")


def check_text(name: str, value: Any) -> None:
    """Raise InputError unless `value` is a string; name: what it is, for the message."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {type(value).__name__}")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise InputError unless `value` is one of these strings; name: what it is, for the message."""
    if not (isinstance(value, str) and value in choices):
        *others, last = map(repr, choices)
        raise InputError(f"{name} must be {', '.join(others)} or {last}, got {shown(value)}")


def of_kind(name: str, value: Any, kind: type[T], default: Callable[[], T] | None = None) -> T:
    """Return an object of a class; the default, if there is one, for None. Raises InputError for another."""
    value = default() if default and value is None else value
    if not isinstance(value, kind):
        raise InputError(f"{name} must be a {kind.__name__}, got {given_kind(value)}")
    return value


def as_path(name: str, value: Any) -> Path:
    """Return a path. Raises InputError unless `value` is a string or a path object that names a file."""
    if not isinstance(value, str | PathLike):
        raise InputError(f"{name} must be a string or a Path, got {type(value).__name__}")
    try:
        path = Path(value)
        if value == "" or b"\0" in os.fsencode(path):
            raise ValueError("it is empty" if value == "" else "it has a null character")
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be a path: {error}") from error
    return path


def items_of(name: str, values: Iterable[T], kind: type) -> Iterator[T]:
    """Yield the items of an iterable. Raises InputError if it is none or an item, or holds another kind."""
    is_one = isinstance(values, str) or getattr(values, "shape", None) == ()
    if is_one or not isinstance(values, Iterable) or (isinstance(values, kind) and kind is not object):
        items = "" if kind is object else f" of {kind.__name__} objects"
        raise InputError(f"{name} must be a list{items}, got {given_kind(values)}")
    for value in values:
        if not isinstance(value, kind):
            raise InputError(f"{name} must be {kind.__name__} objects, got {given_kind(value)}")
        yield value


def without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object of its pairs. Raises ValueError if a key occurs twice: only one would be read."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key[:100]!r} occurs twice")
        values[key] = value
    return values


def check_methods(name: str, value: Any, methods: Iterable[str], advice: str) -> None:
    """Raise InputError with this advice if an object of this name lacks one of the methods."""
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise InputError(f"{name} must have the method `{method}`, got {type(value).__name__}; {advice}")


def _is_number(value: Any, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _range(least: float, above_zero: bool, most: float) -> str:
    if least > -math.inf and most < math.inf:
        return f"from {least:g} to {most:g}"
    lowest = "positive" if above_zero else f"at least {least:g}" if least > -math.inf else ""
    return " and ".join(filter(None, [lowest, f"at most {most:g}" if most < math.inf else ""]))


def shown(value: Any) -> str:
    """Return a value as a message shows it: never more than 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # an int with thousands of digits
        text = "a huge number"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@contextmanager
def own_errors(call: str, arguments: Iterable[str] = ()) -> Iterator[None]:
    """Raise an InputError that names the argument in place of pydantic's error.

    call, arguments: what is called and what it takes, for the message. An error of ours that pydantic wrapped
        is raised as it was.
    """
    try:
        yield
    except ValueError as error:
        list_errors = getattr(error, "errors", None)
        if isinstance(error, InputError) or not callable(list_errors):
            raise
        problems = list_errors()
        for problem in problems:
            cause = problem.get("ctx", {}).get("error")
            if isinstance(cause, PreciseRagError):
                raise cause from None
        first = problems[0]
        name = str(first["loc"][0]) if first["loc"] else call
        if first["type"] == "missing":
            raise InputError(f"{call} needs {name}=") from None
        if first["type"] == "extra_forbidden":
            raise InputError(f"{call} has no argument {name!r}; it has {', '.join(arguments)}") from None
        rule = str(first["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
        given = first["input"]
        got = str(given) if isinstance(given, int | float) else given_kind(given)
        raise InputError(f"{name} must be {rule.partition(', unable to')[0]}, got {got}") from None


def given_kind(value: object) -> str:
    """Return the kind of a value for a message, with the package that it is from."""
    source = type(value).__module__.partition(".")[0]
    return type(value).__name__ + ("" if source == "builtins" else f" of {source}")
