"""Checks of the names and kinds of arguments, with the word to write in place of a wrong one."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from precise_rag.errors import InputError, PreciseRagError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Words = Mapping[str, str]
"""What users may write in place of each of our words, separated by spaces."""

OPTION_WORDS = {
    "min_score": "floor threshold least",
    "share_of_best": "of_best ratio",
    "similarity_threshold": "threshold",
}
"""What users may write for options that have the same word in the core and in both frameworks."""


def check_names(
    call: str, given: Iterable[str], taken: Iterable[str], words: Words, *, more: bool = False
) -> None:
    """Raise InputError for an argument that is not taken, and name the right word if there is one.

    call: what is called, for the message.
    given, taken: names of the arguments.
    words: may name, in place of a word, how it is written: `search_kwargs={"filter": …}`.
    more: whether others are passed on, and checked there.
    """
    taken = list(taken)
    for name in given:
        if name in taken:
            continue
        for right, wrong in words.items():
            if name in wrong.split() and right.partition("=")[0] in taken:
                word = right if "=" in right else f"{right}="
                raise InputError(f"{call} has no argument {name!r}; write {word}")
        if not more:
            raise InputError(f"{call} has no argument {name!r}; it takes {', '.join(taken)}")


def named_by(words: Words, *groups: type) -> Callable[[F], F]:
    """Return a decorator: the function checks the names of its arguments by `check_names`.

    groups: typed dictionaries of further arguments. With any, the function takes no others.
    """

    def decorate(function: F) -> F:
        parameters = [*inspect.signature(function).parameters.values()][1:]
        taken = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
        more = len(taken) < len(parameters) and not groups
        taken += [name for group in groups for name in group.__annotations__]

        @wraps(function)
        def checked(owner: Any, /, *args: Any, **named: Any) -> Any:
            check_names(_called(owner, function), named, taken, words, more=more)
            return function(owner, *args, **named)

        return checked  # type: ignore[return-value]

    return decorate


def check_search_options(call: str, search: Callable[..., Any], given: Iterable[str]) -> None:
    """Raise InputError for an option that the search of an index does not take.

    call: for the message. search: the method. given: names of the options.
    """
    parameters = inspect.signature(search).parameters.values()
    taken = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    more = any(one.kind is one.VAR_KEYWORD for one in parameters)
    check_names(call, given, taken, {"filter": "filters where"}, more=more)


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
def own_errors(call: str, wanted: Mapping[str, str]) -> Iterator[None]:
    """Raise an InputError that names the argument in place of pydantic's error.

    call: what is called, for the message. wanted: what to pass for an argument; default: as pydantic says.
    An error of ours that pydantic wrapped is raised as it was.
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
        says = str(first["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
        rule, given = wanted.get(name, says.partition(", unable to")[0]), first["input"]
        got = str(given) if isinstance(given, int | float) else given_kind(given)
        raise InputError(f"{name} must be {rule}, got {got}") from None


def given_kind(value: object) -> str:
    """Return the kind of a value for a message, with the package that it is from."""
    source = type(value).__module__.partition(".")[0]
    return type(value).__name__ + ("" if source == "builtins" else f" of {source}")


def _called(owner: Any, function: Callable[..., Any]) -> str:
    kind = owner if isinstance(owner, type) else type(owner)
    return kind.__name__ if function.__name__ == "__init__" else f"{kind.__name__}.{function.__name__}"
