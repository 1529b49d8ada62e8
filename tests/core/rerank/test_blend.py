import math

import numpy as np
import pytest

from precise_rag.rerank.blend import Blend, log_odds


def test_a_line_of_columns_by_hand() -> None:
    blend = Blend({"a": 2.0, "best": -1.0, "offset": 0.5})
    found = blend({"a": np.array([0.0, 1.0]), "best": 3.0, "unused": np.array([9.0, 9.0])})
    assert found == pytest.approx([1 / (1 + math.exp(2.5)), 1 / (1 + math.exp(0.5))])
    assert found.dtype == np.float32


def test_a_missing_column_is_an_error() -> None:
    with pytest.raises(KeyError, match="rank"):
        Blend({"rank": 1.0})({"network": np.zeros(2)})


def test_far_values_stay_probabilities() -> None:
    with np.errstate(over="raise", invalid="raise"):
        found = Blend({"a": 1.0})({"a": np.array([-1e4, 1e4])})
    assert found.tolist() == [0.0, 1.0]


def test_log_odds_undo_a_line_and_stay_finite() -> None:
    lines = np.array([-3.0, 0.0, 5.0])
    assert log_odds(Blend({"a": 1.0})({"a": lines})) == pytest.approx(lines, abs=1e-3)
    assert np.isfinite(log_odds(np.array([0.0, 1.0], dtype=np.float32))).all()
