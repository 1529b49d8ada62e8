import math
from typing import Any

import numpy as np
import pytest

from precise_rag.checks import check_number
from precise_rag.errors import InputError


@pytest.mark.parametrize("value", [0, 0.5, np.float32(1.0), np.int64(3), None])
def test_numbers_in_the_range_pass_and_none_where_it_means_something(value: Any) -> None:
    check_number("x", value, least=0, most=3, none="no limit")


@pytest.mark.parametrize(
    ("value", "options", "said"),
    [
        (0, {"above_zero": True}, "x must be positive, got 0"),
        (-1, {"least": 0}, "x must be at least 0, got -1"),
        (4, {"least": 0, "most": 3}, "x must be from 0 to 3, got 4"),
        (4, {"most": 3}, "x must be at most 3, got 4"),
        (math.nan, {}, "x must be a finite number, got nan"),
        (math.inf, {"least": 0}, "x must be a finite number, at least 0, got inf"),
        ("3", {"least": 0, "whole": True}, "x must be a whole number, at least 0, got '3'"),
        (2.5, {"whole": True}, "x must be a whole number, got 2.5"),
        (True, {}, "x must be a finite number, got True"),
        (None, {}, "x must be a finite number, got None"),
        (0, {"least": 1, "none": "no limit"}, "x must be at least 1, or None for no limit, got 0"),
        pytest.param(10**5_000, {}, "x must be a finite number, got a huge number", id="huge"),
        ("y" * 100, {}, f"got '{'y' * 59}…"),
    ],
)
def test_any_other_value_is_named_with_the_rule(value: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as raised:
        check_number("x", value, **options)
    assert said in str(raised.value)
