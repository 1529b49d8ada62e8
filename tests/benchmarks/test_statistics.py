"""Intervals and paired tests against exact and analytic values."""

import itertools

import numpy as np
import pytest

from benchmarks.harness.statistics import compare_over_sets, mean_interval


def test_groups_are_drawn_whole_and_count_by_their_size() -> None:
    values, groups = np.repeat([0.0, 1.0] * 20, 25), np.repeat(np.arange(40), 25).tolist()
    alone, together = mean_interval(np.array([0.0, 1.0] * 20)), mean_interval(values, groups)
    assert tuple(together) == pytest.approx(tuple(alone)), "25 copies of 40 facts are 40 facts"
    narrow = mean_interval(values)
    assert narrow.high - narrow.low < (together.high - together.low) / 3
    assert mean_interval([1.0, 3.0], ["a", "a"]) == (2, 2, 2), "of one group nothing is known"
    assert mean_interval([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"]).mean == pytest.approx(3 / 4)


def test_a_p_value_agrees_with_the_exact_sign_flip_test() -> None:
    gains = [np.array([0.4, 0.1, -0.1, 0.7]), np.array([0.1, 0.0, 0.4, 0.2, -0.2])]
    signs = np.array(list(itertools.product([-1, 1], repeat=9)))
    flipped = (signs[:, :4] @ gains[0] / 4 + signs[:, 4:] @ gains[1] / 5) / 2
    observed = (gains[0].mean() + gains[1].mean()) / 2
    found = compare_over_sets([(gain, None) for gain in gains])
    assert found.p_value == pytest.approx((np.abs(flipped) >= observed - 1e-12).mean(), abs=0.01)
    assert found.difference.mean == pytest.approx(observed)
    assert compare_over_sets([(np.zeros(3), None)]) == ((0, 0, 0), 1.0), "equal pipelines do not differ"


def test_sets_of_different_size_have_the_same_weight_and_are_redrawn_alone() -> None:
    draw = np.random.default_rng(2)
    small, large = draw.normal(0.5, 0.2, 20), draw.normal(-0.1, 0.2, 400)
    found = compare_over_sets([(small, None), (large, None)]).difference
    half = 1.96 * np.sqrt(small.var() / 20 + large.var() / 400) / 2
    mean = (small.mean() + large.mean()) / 2
    assert tuple(found) == pytest.approx((mean, mean - half, mean + half), abs=0.01)


@pytest.mark.parametrize("values", [[], [1.0, np.nan]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="no numbers"):
        mean_interval(values)
