"""Checks of the settings and tensors of a model whose files may come from anywhere."""

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from precise_rag.checkpoints.saved import Tensors
from precise_rag.errors import ModelError


class Rule(NamedTuple):
    """A rule for a setting, in words and as a test of a value."""

    says: str
    holds: Callable[[Any], bool]


TEXT = Rule("a text", lambda value: isinstance(value, str))
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
OBJECT = Rule("an object", lambda value: isinstance(value, dict))


def whole(low: int, high: int) -> Rule:
    """A whole number from `low` to `high`."""
    return Rule(f"a whole number from {low} to {high}", lambda value: _is_whole(value, low, high))


def each(rule: Rule, low: int, high: int) -> Rule:
    """A list of `low` to `high` values that each keep `rule`."""
    return Rule(
        f"a list of {low} to {high} values, each {rule.says}",
        lambda value: isinstance(value, list) and low <= len(value) <= high and all(map(rule.holds, value)),
    )


def one_of(*allowed: str) -> Rule:
    """One of these texts."""
    return Rule(f"one of {', '.join(allowed)}", lambda value: isinstance(value, str) and value in allowed)


def numbers(allowed: Collection[str]) -> Rule:
    """An object of finite numbers, with names among `allowed`."""
    return Rule(
        f"an object of finite numbers with names among {', '.join(sorted(allowed))}",
        lambda value: (
            isinstance(value, dict) and value.keys() <= set(allowed) and all(map(_is_number, value.values()))
        ),
    )


def check_config(folder: str | Path, config: Any, rules: Mapping[str, Rule]) -> None:
    """Raise ModelError for the first setting that is missing or breaks its rule.

    folder: named in the error. rules: by the setting's name.
    """
    if not isinstance(config, Mapping):
        raise ModelError(f"{folder}: config.json must hold objects, got {_short(config)}")
    for name, rule in rules.items():
        if name not in config or not rule.holds(config[name]):
            given = f"got {_short(config[name])}" if name in config else "it is missing"
            raise ModelError(
                f"{folder}: {name} in config.json must be {rule.says}, {given}; "
                "install or train the model again"
            )


def check_tensors(folder: str | Path, tensors: Tensors, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ModelError for the first tensor that is missing or has another shape.

    folder: named in the error. shapes: by the tensor's name; -1 stands for any length.
    """
    for name, shape in shapes.items():
        actual = tensors[name].shape if name in tensors else None
        if (
            actual is None
            or len(actual) != len(shape)
            or any(wanted not in (-1, length) for wanted, length in zip(shape, actual, strict=True))
        ):
            raise ModelError(
                f"{folder}: the tensor {name!r} must have shape {shape}, got {actual}; "
                "install or train the model again"
            )


def _is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 1e9 and math.isfinite(value)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
