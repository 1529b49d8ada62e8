import numpy as np
import pytest

from precise_rag.checkpoints.quantized import dequantized, quantized
from precise_rag.errors import ModelError


def test_quantized_tables_can_be_restored_up_to_rounding() -> None:
    random = np.random.default_rng(0)
    table = random.normal(size=(5, 64)).astype(np.float32) * np.array(
        [[1], [100], [0.01], [0], [1]], np.float32
    )
    kept = quantized({"table": table, "bias": np.float32([0.5, -3])}, ["table"])
    assert kept["table"].dtype == np.int8
    assert kept["table_scale"].shape == (5, 1)
    back = dequantized(kept)
    assert sorted(back) == ["bias", "table"]
    assert back["bias"].tolist() == [0.5, -3]
    assert (np.abs(back["table"] - table) <= np.abs(table).max(axis=1, keepdims=True) / 200).all()


def test_blocks_of_a_row_have_scales_of_their_own_and_each_row_needs_one() -> None:
    table = np.float32([[1, 0.25, 100, 25], [0.01, 0, -1, 1]])
    kept = quantized({"table": table}, ["table"], block=2)
    assert kept["table"].tolist() == [[127, 32, 127, 32], [127, 0, -127, 127]]
    assert kept["table_scale"].shape == (2, 2)
    np.testing.assert_allclose(dequantized(kept)["table"], table, rtol=0.01)
    int8 = np.ones((3, 4), dtype=np.int8)
    for tensors in ({"t": int8}, {"t": int8, "t_scale": np.ones((3, 3), dtype=np.float16)}):
        with pytest.raises(ModelError, match="t_scale"):
            dequantized(tensors)
