import numpy as np
import pytest

from precise_rag.encoders.rows import encoded_rows
from precise_rag.errors import ModelError


def test_rows_are_scaled_to_unit_length() -> None:
    rows = encoded_rows([[3, 4], [0, 0]], source="a model")
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0], [1.0, 2.0]], "a model returned vectors of different lengths"),
        ([1.0, 2.0], r"a model returned an array of shape \(2,\)"),
        ([[float("nan")]], "a model returned vectors with NaN or infinity"),
        ([[float("inf")]], "a model returned vectors with NaN or infinity"),
    ],
)
def test_broken_vectors_are_refused(vectors: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        encoded_rows(vectors, source="a model")
