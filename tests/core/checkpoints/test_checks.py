from typing import Any

import numpy as np
import pytest

from precise_rag.checkpoints.checks import (
    FLAG,
    TEXT,
    Rule,
    check_config,
    check_tensors,
    each,
    numbers,
    one_of,
    whole,
)
from precise_rag.errors import ModelError


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (TEXT, ["", "x"], [1, None, ["x"]]),
        (FLAG, [True, False], [1, "true", None]),
        (whole(1, 5), [1, 5], [0, 6, 10**12, True, 1.0, "1", None]),
        (each(whole(0, 9), 1, 2), [[0], [1, 9]], [[], [1, 2, 3], [10], 1, {"a": 1}]),
        (one_of("a", "b"), ["a"], ["c", "", ["a"], None]),
        (
            numbers(("a", "b")),
            [{}, {"a": 1, "b": -0.5}],
            [{"c": 1}, {"a": float("nan")}, {"a": 10**400}, [], 1],
        ),
    ],
)
def test_rules(rule: Rule, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        check_config("model", {"setting": value}, {"setting": rule})
    for value in bad:
        with pytest.raises(ModelError, match=r"model: setting in config\.json must be"):
            check_config("model", {"setting": value}, {"setting": rule})


def test_missing_settings_are_named() -> None:
    with pytest.raises(ModelError, match=r"setting .* it is missing"):
        check_config("model", {}, {"setting": TEXT})
    with pytest.raises(ModelError, match=r"must hold objects, got \[\]"):
        check_config("model", [], {})


def test_shapes_of_tensors() -> None:
    tensors = {"weight": np.zeros((2, 3)), "bias": np.zeros(3)}
    check_tensors("model", tensors, {"weight": (2, 3), "bias": (-1,)})
    for shapes in ({"weight": (3, 2)}, {"weight": (2,)}, {"other": (1,)}):
        with pytest.raises(ModelError, match=r"must have shape .* got"):
            check_tensors("model", tensors, shapes)
