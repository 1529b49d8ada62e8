"""Intervals and paired tests against exact and analytic values."""

import itertools

import numpy as np
import pytest

from benchmarks.harness.statistics import compare, compare_over_sets, mean_interval


def test_an_interval_agrees_with_the_normal_approximation() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, size=400)
    interval, half = mean_interval(values), 1.96 * values.std() / np.sqrt(400)
    assert tuple(interval) == pytest.approx(
        (values.mean(), values.mean() - half, values.mean() + half), abs=0.03
    )
    assert mean_interval(values) == interval, "same seed, same interval"


def test_groups_are_drawn_whole() -> None:
    values, groups = np.repeat([0.0, 1.0] * 20, 25), np.repeat(np.arange(40), 25).tolist()
    alone, together = mean_interval(np.array([0.0, 1.0] * 20)), mean_interval(values, groups)
    assert tuple(together) == pytest.approx(tuple(alone)), "25 copies of 40 facts are 40 facts"
    narrow = mean_interval(values)
    assert narrow.high - narrow.low < (together.high - together.low) / 3
    assert mean_interval([1.0, 3.0], ["a", "a"]) == (2, 2, 2), "of one group nothing is known"


def test_groups_of_different_size_count_by_their_size() -> None:
    assert mean_interval([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"]).mean == pytest.approx(3 / 4)


def test_a_p_value_agrees_with_the_exact_sign_flip_test() -> None:
    gain = np.array([0.4, 0.1, -0.1, 0.7, 0.1, 0.0, 0.4, 0.2])
    signs = np.array(list(itertools.product([-1, 1], repeat=len(gain))))
    exact = (np.abs(signs @ gain) >= abs(gain.sum()) - 1e-9).mean()
    found = compare(gain, np.zeros(len(gain)))
    assert found.p_value == pytest.approx(exact, abs=0.01)
    assert found.difference.mean == pytest.approx(gain.mean())


def test_a_p_value_over_sets_agrees_with_the_exact_test() -> None:
    gains = [np.array([0.4, 0.1, -0.1, 0.7]), np.array([0.1, 0.0, 0.4, 0.2, -0.2])]
    signs = np.array(list(itertools.product([-1, 1], repeat=9)))
    flipped = (signs[:, :4] @ gains[0] / 4 + signs[:, 4:] @ gains[1] / 5) / 2
    observed = (gains[0].mean() + gains[1].mean()) / 2
    found = compare_over_sets([(gain, None) for gain in gains])
    assert found.p_value == pytest.approx((np.abs(flipped) >= observed - 1e-12).mean(), abs=0.01)
    assert found.difference.mean == pytest.approx(observed)


def test_sets_of_different_size_have_the_same_weight_and_are_redrawn_alone() -> None:
    draw = np.random.default_rng(2)
    small, large = draw.normal(0.5, 0.2, 20), draw.normal(-0.1, 0.2, 400)
    found = compare_over_sets([(small, None), (large, None)]).difference
    half = 1.96 * np.sqrt(small.var() / 20 + large.var() / 400) / 2
    mean = (small.mean() + large.mean()) / 2
    assert tuple(found) == pytest.approx((mean, mean - half, mean + half), abs=0.01)


def test_equal_pipelines_do_not_differ() -> None:
    assert compare([1.0, 0.0, 0.5], [1.0, 0.0, 0.5]) == ((0, 0, 0), 1.0)


@pytest.mark.parametrize("values", [[], [1.0, np.nan]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="no numbers"):
        mean_interval(values)
