"""Products with vectors of few bits, draws among equal scores, and the fusion of several."""

import math
from pathlib import Path

import numpy as np
import pytest

from precise_rag.index import DenseIndex, DocumentIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.index import vectors as module
from precise_rag.index.ranking import (
    LARGEST,
    LOTTERY,
    draws,
    fair_rows,
    lottery,
    min_max,
    pooled,
    seeds_of,
    weighted_sum,
    z_score,
)
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


def test_draws_depend_on_the_document_and_the_place_alone() -> None:
    ids, places = ["a", "a", "a", "b", "b"], [0, 1, 2, 0, 1]
    drawn = draws(seeds_of(ids), places)
    other = draws(seeds_of(["b", "a"]), [1, 2])
    assert other.tolist() == [drawn[4], drawn[2]]
    assert len(set(drawn.tolist())) == len(ids)


def test_draws_are_spread_evenly_within_their_range() -> None:
    drawn = draws(seeds_of(["one"]).repeat(20_000), range(20_000)) / LARGEST
    shares, _ = np.histogram(drawn, bins=10, range=(0, 1))
    assert abs(shares / 20_000 - 0.1).max() < 0.01
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.03
    numbers = lottery(["a"] * 500, range(-1, 499))
    assert min(numbers) >= 0
    assert max(numbers) < LOTTERY
    assert len(set(numbers)) == 500


def test_of_equal_scores_those_with_the_lowest_draws_are_taken() -> None:
    scores = np.array([1, 3, 1, 1, 2, 1], dtype=np.float32)
    drawn = np.array([5, 9, 1, 4, 8, 2])
    assert fair_rows(scores, 4, lambda rows: drawn[rows]).tolist() == [1, 2, 4, 5]
    assert fair_rows(scores, 2, lambda rows: drawn[rows]).tolist() == [1, 4]
    assert fair_rows(scores, 9, lambda rows: drawn[rows]).tolist() == [0, 1, 2, 3, 4, 5]
    drawn = draws(seeds_of(["one"]).repeat(5_000), range(5_000))
    rows = fair_rows(np.zeros(5_000, dtype=np.float32), 20, lambda rows: drawn[rows])
    assert sorted(drawn[rows].tolist()) == sorted(drawn.tolist())[:20]


def test_scores_are_scaled_by_their_range_or_their_deviation() -> None:
    np.testing.assert_allclose(min_max(np.array([2, 4, 3], dtype=np.float32)), [0, 1, 0.5])
    np.testing.assert_allclose(min_max(np.array([3, 3], dtype=np.float32)), [0, 0])
    deviation = math.sqrt(3 / 16)
    assert z_score(np.array([0, 0, 0, 1], dtype=np.float32), 1) == pytest.approx(0.75 / deviation)
    assert z_score(np.array([3, 3], dtype=np.float32), 3) == pytest.approx(0)


def test_fusion_uses_the_union_of_the_pools_and_the_true_scores_of_its_rows() -> None:
    dense = np.array([0.9, 0.5, 0.1, 0.7], dtype=np.float32)
    words = np.array([0.0, 8.0, 9.0, 1.0], dtype=np.float32)
    rows = pooled([dense, words], pool=1, drawn=np.negative)
    # best of each: rows 0 and 2; dense 0.9 and 0.1 become 1 and 0, words 0 and 9 become 0 and 1
    assert rows.tolist() == [0, 2]
    np.testing.assert_allclose(weighted_sum([dense[rows], words[rows]], [0.5, 0.5]), [0.5, 0.5], rtol=1e-6)
    rows = pooled([dense, words], pool=2, drawn=np.negative)
    fused = weighted_sum([dense[rows], words[rows]], [0.5, 0.5])
    # rows 0, 1, 2, 3: dense 1, .5, 0, .75; words 0, 8/9, 1, 1/9
    np.testing.assert_allclose(fused, [0.5, 0.25 + 4 / 9, 0.5, 0.375 + 1 / 18], rtol=1e-5)
