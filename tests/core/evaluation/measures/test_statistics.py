"""Intervals and paired tests against exact and analytic values."""

import itertools

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.evaluation import bootstrap_interval, compare_over_sets, compare_paired


def test_interval_agrees_with_the_normal_approximation() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, size=400)
    interval = bootstrap_interval(values, n_resamples=4000)
    half = 1.96 * values.std() / np.sqrt(400)
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half, abs=0.02)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.02)
    again = bootstrap_interval(values, n_resamples=4000)
    assert tuple(interval) == pytest.approx(tuple(again)), "same seed, same interval"


def test_groups_are_drawn_whole() -> None:
    values = np.repeat([0.0, 1.0] * 20, 25)
    groups = np.repeat(np.arange(40), 25).tolist()
    alone = bootstrap_interval(np.array([0.0, 1.0] * 20))
    together = bootstrap_interval(values, groups=groups)
    assert tuple(together) == pytest.approx(tuple(alone)), "25 copies of 40 facts are 40 facts"
    narrow = bootstrap_interval(values)
    assert narrow.high - narrow.low < (together.high - together.low) / 3


def test_p_value_agrees_with_the_exact_sign_flip_test() -> None:
    a, b = (
        np.array([0.9, 0.8, 0.4, 0.9, 0.7, 0.6, 0.5, 0.9]),
        np.array([0.5, 0.7, 0.5, 0.2, 0.6, 0.6, 0.1, 0.7]),
    )
    gain = a - b
    signs = np.array(list(itertools.product([-1, 1], repeat=len(gain))))
    exact = (np.abs(signs @ gain) >= abs(gain.sum()) - 1e-9).mean()
    found = compare_paired(a, b, n_resamples=20_000)
    assert found.p_value == pytest.approx(exact, abs=0.01)
    assert (found.wins, found.losses, found.ties) == (6, 1, 1)
    assert found.difference.mean == pytest.approx(gain.mean())


def test_equal_pipelines_do_not_differ() -> None:
    found = compare_paired([1.0, 0.0, 0.5], [1.0, 0.0, 0.5])
    assert found.p_value == pytest.approx(1)
    assert tuple(found.difference) == pytest.approx((0, 0, 0))


def test_one_set_alone_is_the_paired_comparison() -> None:
    draw = np.random.default_rng(2)
    a, b = draw.random(60), draw.random(60)
    groups = (np.arange(60) // 3).tolist()
    alone = compare_paired(a, b, groups=groups)
    over = compare_over_sets([(a, b, groups)])
    assert tuple(over.difference) == pytest.approx(tuple(alone.difference), abs=0.01)
    assert over.p_value == pytest.approx(alone.p_value, abs=0.03)
    assert (over.wins, over.losses, over.ties) == (alone.wins, alone.losses, alone.ties)


def test_sets_of_different_size_have_the_same_weight() -> None:
    small, large = (np.full(4, 0.5), np.zeros(4), None), (np.zeros(400), np.full(400, 0.1), None)
    found = compare_over_sets([small, large])
    assert found.difference.mean == pytest.approx((0.5 - 0.1) / 2)
    assert (found.wins, found.losses, found.ties) == (4, 400, 0)


def test_p_value_over_sets_agrees_with_the_exact_test() -> None:
    gains = [np.array([0.4, 0.1, -0.1, 0.7]), np.array([0.1, 0.0, 0.4, 0.2, -0.2])]
    signs = np.array(list(itertools.product([-1, 1], repeat=9)))
    flipped = (signs[:, :4] @ gains[0] / 4 + signs[:, 4:] @ gains[1] / 5) / 2
    observed = (gains[0].mean() + gains[1].mean()) / 2
    exact = (np.abs(flipped) >= observed - 1e-12).mean()
    found = compare_over_sets([(g, np.zeros(len(g)), None) for g in gains], n_resamples=20_000)
    assert found.p_value == pytest.approx(exact, abs=0.01)
    assert found.difference.mean == pytest.approx(observed)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="same questions of a set, at least one, got 1 and 2"):
        compare_over_sets([([1.0], [1.0, 2.0], None)])
    with pytest.raises(InputError, match="at least one, got 0 and 0"):
        compare_over_sets([([], [], None)])
    with pytest.raises(InputError, match="NaN"):
        bootstrap_interval([1.0, np.nan])
    with pytest.raises(InputError, match="same questions, got 1 and 2"):
        compare_paired([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="got 2 groups for 1 values"):
        bootstrap_interval([1.0], groups=["a", "b"])
    assert np.isnan(bootstrap_interval([]).low)
