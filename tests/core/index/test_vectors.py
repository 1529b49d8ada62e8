"""Vectors stored in fewer bits score nearly the same."""

from pathlib import Path

import numpy as np
import pytest

from precise_rag.index import DenseIndex, DocumentIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.index import vectors as module
from precise_rag.index.table import Columns
from precise_rag.index.vectors import (
    Products,
    RoughVectors,
    code_products,
    dot,
    read_vectors,
    rough_columns,
    vector_columns,
)
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.vectors import clustered

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("int8", 0.02)])
def test_smaller_vectors_score_nearly_the_same(precision: str, tolerance: float) -> None:
    rows = clustered(40, 64)
    columns = vector_columns(rows, precision)
    np.testing.assert_allclose(read_vectors(columns, slice(3, 9)), rows[3:9], atol=tolerance)
    np.testing.assert_allclose(read_vectors(columns, np.array([5, 1])), rows[[5, 1]], atol=tolerance)
    np.testing.assert_allclose(dot(columns, rows[0]), rows @ rows[0], atol=2 * tolerance)


@pytest.mark.parametrize("kind", [DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex])
def test_every_index_of_vectors_takes_a_precision_and_maps_what_it_loads(
    kind: type[DocumentIndex], tmp_path: Path
) -> None:
    exact = kind.build(OLD + NEW, HashEncoder())
    small = kind.build(OLD + NEW, HashEncoder(), precision="int8")
    small.save(tmp_path / "index")
    small = kind.load(tmp_path / "index", HashEncoder())
    vectors = small._parts[0].block.columns["vectors"]
    assert vectors.dtype == np.int8
    assert isinstance(vectors, np.memmap)
    assert not vectors.flags.writeable
    expected = {c.id: c.score for c in exact.search("old cat sleeps", 200)}
    found = {c.id: c.score for c in small.search("old cat sleeps", 200)}
    assert found == pytest.approx(expected, abs=0.03)


def test_rough_products_are_within_the_margin_and_two_parts_of_a_query_nearly_exact() -> None:
    vectors = clustered(500)
    rounded = RoughVectors(**rough_columns(vectors))
    for query in clustered(20, seed=1):
        off = np.abs(rounded.products(query) - vectors @ query).max()
        assert 0 < off < rounded.margin
    exact = rounded.codes.astype(np.float32) @ query
    one, two = (np.abs(code_products(rounded.codes, query, parts=k) - exact).max() for k in (1, 2))
    assert two < one / 30


@pytest.mark.parametrize("share", [None, 0.5, 0.05])
def test_the_best_rows_are_those_of_all_products(
    share: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
    monkeypatch.setattr(module, "_FEW", 1)
    columns = {"vectors": clustered(2000)}
    kept: dict[str, Columns] = {}
    products = Products.of(columns, lambda name, make: kept.setdefault(name, make()))
    exact = Products.of(columns)
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
    products = Products.of({"vectors": clustered(50)}, lambda *_: pytest.fail("was rounded"))
    assert products.rough(clustered(1)[0]) is None
