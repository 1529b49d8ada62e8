"""Plain values of a record: what JSON can represent, without keys and passwords."""

import json
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from precise_rag.redaction import redacted

_DEEPEST = 30
_MOST_BITS = 1_000
_CYCLE = "[the value contains itself]"


def plain(value: Any) -> Any:
    """Return `value` as mappings with text keys, lists, texts, numbers, booleans and None.

    Numbers that JSON cannot represent become texts, and so do integers of more than 1,000 bits, values
    that are nested more than 30 deep, and any other value. Never raises.
    """
    return _plain(value, ())


def to_json(value: Any, *, indent: int | None) -> str:
    """Return plain values as JSON that can be written as UTF-8; lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any, around: tuple[int, ...]) -> Any:
    if isinstance(value, str):
        return redacted(str(value))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Real):
        return _number(value)
    if id(value) in around:
        return _CYCLE
    if isinstance(value, Mapping | list | tuple | set | frozenset) and len(around) < _DEEPEST:
        try:
            return _container(value, (*around, id(value)))
        except Exception:  # a mapping of the user that fails is shown by its name
            return f"[{type(value).__name__}]"
    return redacted(_text(value))


def _container(value: Mapping[Any, Any] | Iterable[Any], around: tuple[int, ...]) -> Any:
    if isinstance(value, Mapping):
        return {redacted(_text(key)): _plain(item, around) for key, item in value.items()}
    return [_plain(item, around) for item in value]


def _number(value: Real) -> int | float | str:
    if isinstance(value, Integral):
        whole = int(value)
        return whole if whole.bit_length() <= _MOST_BITS else f"[a number of {whole.bit_length()} bits]"
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return f"[{type(value).__name__}]"
    return number if math.isfinite(number) else str(number)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # a value whose text cannot be made is shown by its name
        return f"[{type(value).__name__}]"
