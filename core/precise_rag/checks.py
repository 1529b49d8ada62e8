"""Checks of the numbers that users pass as limits, prices and settings."""

import math
from numbers import Integral, Real
from typing import Any

from precise_rag.errors import InputError

_SHOWN = 60


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above_zero: bool = False,
    most: float | None = None,
    whole: bool = False,
    none: str | None = None,
) -> None:
    """Raise InputError unless `value` is a finite number in the range.

    name: what the number is, for the message.
    least, most: the smallest and the largest number allowed.
    above_zero: whether it must be more than 0.
    whole: whether it must be a whole number.
    none: what None means, if it is allowed.
    """
    if value is None and none is not None:
        return
    is_number = _is_number(value, whole)
    if is_number and not (
        (least is not None and value < least)
        or (above_zero and value <= 0)
        or (most is not None and value > most)
    ):
        return
    rule = _range(least, above_zero, most)
    if not is_number:
        rule = f"a {'whole' if whole else 'finite'} number{', ' if rule else ''}{rule}"
    raise InputError(f"{name} must be {rule}{f', or None for {none}' if none else ''}, got {_shown(value)}")


def _is_number(value: Any, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _range(least: float | None, above_zero: bool, most: float | None) -> str:
    if least is not None and most is not None:
        return f"from {least:g} to {most:g}"
    if above_zero:
        return "positive" if most is None else f"positive and at most {most:g}"
    if least is not None:
        return f"at least {least:g}"
    return "" if most is None else f"at most {most:g}"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # an int with thousands of digits
        text = "a huge number"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
