import numpy as np

from precise_rag.vectors import unit_rows


def test_rows_have_unit_length_and_zero_rows_stay_zero() -> None:
    rows = unit_rows(np.array([[3, 4], [0, 0], [0, 1e-6]], dtype=np.float32))
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [0, 1]], rtol=1e-6)


def test_short_rows_become_zero() -> None:
    rows = unit_rows(np.array([[3, 4], [0, 1e-4]], dtype=np.float32), shortest=1e-3)
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0]], rtol=1e-6)


def test_the_rows_given_are_not_changed() -> None:
    given = np.array([[3, 4]], dtype=np.float32)
    unit_rows(given)
    assert given.tolist() == [[3, 4]]
