import math

import numpy as np
import pytest

from precise_rag.rerank.packaged import FeatureNetwork

# Two features and one hidden unit. Inputs are (known 1, known 2, unknown 1, unknown 2).
TENSORS = {
    "mean": np.array([1.0, 0.0]),
    "deviation": np.array([2.0, 1.0]),
    "linear": np.array([1.0, 10.0, 100.0, 1000.0]),
    "bias": np.array([0.5]),
    "weight1": np.array([[1.0, 0.0, 0.0, 0.0]]),
    "bias1": np.array([1.0]),
    "weight2": np.array([[2.0]]),
    "bias2": np.array([0.0]),
    "weight3": np.array([3.0]),
}


def silu(x: float) -> float:
    return x / (1 + math.exp(-x))


def test_logits_worked_out_by_hand() -> None:
    rows = np.array([[3.0, 2.0], [np.nan, -1.0], [1000.0, np.nan]], dtype=np.float32)
    expected = [
        1.0 + 20.0 + 0.5 + 3 * silu(2 * silu(2.0)),
        100.0 - 10.0 + 0.5 + 3 * silu(2 * silu(1.0)),
        4.0 + 1000.0 + 0.5 + 3 * silu(2 * silu(5.0)),
    ]
    assert FeatureNetwork(TENSORS)(rows) == pytest.approx(expected, rel=1e-5)


def test_unknown_features_are_flagged_and_known_ones_clipped() -> None:
    rows = np.array([[5.0, np.nan], [-99.0, 9.0]], dtype=np.float32)
    inputs = FeatureNetwork.inputs(rows, TENSORS["mean"], TENSORS["deviation"])
    assert inputs == pytest.approx(np.array([[2.0, 0.0, 0.0, 1.0], [-4.0, 4.0, 0.0, 0.0]]))
