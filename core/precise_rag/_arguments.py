"""Checks of the kinds of arguments, in the words of one error."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from precise_rag.errors import InputError, PreciseRagError

T = TypeVar("T")


def check_kind(name: str, value: object, kind: type, wanted: str) -> None:
    """Raise InputError unless a value is of this kind.

    name: what the value is. wanted: what to pass.
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {wanted}, got {given_kind(value)}")


def check_items(name: str, values: Iterable[T], kind: type, wanted: str) -> list[T]:
    """Return the items of an iterable. Raises InputError if it is none, or an item is not of this kind.

    name: what the items are. wanted: what to pass.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of {wanted}, got {given_kind(values)}")
    items = list(values)
    for item in items:
        check_kind(name, item, kind, wanted)
    return items


@contextmanager
def own_errors(call: str) -> Iterator[None]:
    """Raise an InputError that names the argument in place of pydantic's error.

    call: what is called, for the message. An error of ours that pydantic wrapped is raised as it was.
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
        name = str(first["loc"][0]) if first["loc"] else "the argument"
        if first["type"] == "missing":
            raise InputError(f"{call} needs {name}=") from None
        if first["type"] == "extra_forbidden":
            raise InputError(f"{call} has no argument {name!r}") from None
        rule = str(first["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
        given = first["input"]
        got = str(given) if isinstance(given, int | float) else given_kind(given)
        raise InputError(f"{name} must be {rule.partition(', unable to')[0]}, got {got}") from None


def given_kind(value: object) -> str:
    """Return the kind of a value for a message, with the package that it is from."""
    source = type(value).__module__.partition(".")[0]
    return type(value).__name__ + ("" if source == "builtins" else f" of {source}")
