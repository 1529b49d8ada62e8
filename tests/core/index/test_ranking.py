"""Draws among equal scores, and the fusion of several."""

import math

import numpy as np
import pytest

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
