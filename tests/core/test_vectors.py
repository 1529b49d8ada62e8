import numpy as np

from precise_rag.vectors import dots, linear, unit_rows


def test_rows_have_unit_length_and_zero_rows_stay_zero() -> None:
    given = np.array([[3, 4], [0, 0], [0, 1e-6]], dtype=np.float32)
    rows = unit_rows(given)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [0, 1]], rtol=1e-6)
    assert given[0].tolist() == [3, 4], "what is given stays"
    short = unit_rows(np.array([[3, 4], [0, 1e-4]], dtype=np.float32), shortest=1e-3)
    np.testing.assert_allclose(short, [[0.6, 0.8], [0, 0]], rtol=1e-6)


def test_products_of_any_size_are_those_of_numpy() -> None:
    random = np.random.default_rng(0)
    for n, d, k in ((0, 3, 2), (1, 1, 1), (700, 384, 64)):
        rows = random.standard_normal((n, d)).astype(np.float32)
        weight = random.standard_normal((k, d)).astype(np.float32)
        np.testing.assert_allclose(linear(rows, weight), rows @ weight.T, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(dots(rows, weight[0]), rows @ weight[0], rtol=1e-4, atol=1e-4)
    part = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, :3]
    np.testing.assert_allclose(dots(part, np.ones(3, dtype=np.float32)), [3, 39])
