import numpy as np
import pytest

from precise_rag.index.arrays import products as module
from precise_rag.index.arrays import rough
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.products import load_products
from precise_rag.index.arrays.rough import RoughVectors, code_products
from support.vectors import clustered


def test_rough_products_are_within_the_margin() -> None:
    vectors = clustered(500)
    rounded = RoughVectors.of(vectors)
    for query in clustered(20, seed=1):
        off = np.abs(rounded.products(query) - vectors @ query).max()
        assert 0 < off < rounded.margin


def test_two_parts_of_a_query_are_nearly_exact() -> None:
    rounded = RoughVectors.of(clustered(100))
    (query,) = clustered(1, seed=1)
    exact = rounded.codes.astype(np.float32) @ query
    one, two = (np.abs(code_products(rounded.codes, query, parts=k) - exact).max() for k in (1, 2))
    assert two < one / 30


@pytest.mark.parametrize("share", [None, 0.5, 0.05])
def test_the_best_rows_are_those_of_all_products(
    share: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rough, "LEAST_ROWS", 1)
    monkeypatch.setattr(module, "_FEW", 1)
    columns = {"vectors": clustered(2000)}
    kept: dict[str, Columns] = {}
    products = load_products(columns, lambda name, make: kept.setdefault(name, make()))
    exact = load_products(columns)
    assert exact.rough(columns["vectors"][0]) is None
    assert set(kept) == {"rough"}
    rows = None if share is None else np.flatnonzero(np.random.default_rng(0).random(2000) < share)
    for query in clustered(20, seed=1):
        for top_k in (1, 10, 3000):
            found, scores = products.best(query, top_k, rows)
            expected, expected_scores = exact.best(query, top_k, rows)
            assert found.tolist() == expected.tolist()
            np.testing.assert_allclose(scores, expected_scores, atol=1e-6)


def test_few_vectors_are_not_rounded() -> None:
    products = load_products({"vectors": clustered(50)}, lambda *_: pytest.fail("was rounded"))
    assert products.rough(clustered(1)[0]) is None
