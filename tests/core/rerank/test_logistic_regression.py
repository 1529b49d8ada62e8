import math

import numpy as np
import pytest

from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds


def test_probabilities_worked_out_by_hand() -> None:
    regression = LogisticRegression({"a": 2.0, "best": -1.0, "offset": 0.5})
    found = regression({"a": np.array([0.0, 1.0]), "best": 3.0, "unused": np.array([9.0, 9.0])})
    assert found == pytest.approx([1 / (1 + math.exp(2.5)), 1 / (1 + math.exp(0.5))])
    assert found.dtype == np.float32


def test_a_missing_column_is_an_error() -> None:
    with pytest.raises(KeyError, match="rank"):
        LogisticRegression({"rank": 1.0})({"network": np.zeros(2, dtype=np.float32)})


def test_extreme_values_give_probabilities_without_overflow() -> None:
    with np.errstate(over="raise", invalid="raise"):
        found = LogisticRegression({"a": 1.0})({"a": np.array([-1e4, 1e4])})
    assert found == pytest.approx([0.0, 1.0])


def test_log_odds_invert_the_logistic_function_and_stay_finite() -> None:
    odds = np.array([-3.0, 0.0, 5.0])
    assert log_odds(LogisticRegression({"a": 1.0})({"a": odds})) == pytest.approx(odds, abs=1e-3)
    assert np.isfinite(log_odds(np.array([0.0, 1.0], dtype=np.float32))).all()
