"""Intervals and paired tests against exact and analytic values."""

import itertools

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.evaluation import bootstrap_interval, compare_paired


def test_interval_agrees_with_the_normal_approximation() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, size=400)
    interval = bootstrap_interval(values, n_resamples=4000)
    half = 1.96 * values.std() / np.sqrt(400)
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half, abs=0.02)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.02)
    assert interval == bootstrap_interval(values, n_resamples=4000), "same seed, same interval"


def test_groups_are_drawn_whole() -> None:
    values = np.repeat([0.0, 1.0] * 20, 25)
    groups = np.repeat(np.arange(40), 25).tolist()
    alone = bootstrap_interval(np.array([0.0, 1.0] * 20))
    together = bootstrap_interval(values, groups=groups)
    assert together == alone, "25 copies of 40 facts are 40 facts"
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
    assert found.p_value == 1
    assert found.difference == (0, 0, 0)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="NaN"):
        bootstrap_interval([1.0, np.nan])
    with pytest.raises(InputError, match="same questions"):
        compare_paired([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="groups"):
        bootstrap_interval([1.0], groups=["a", "b"])
    assert np.isnan(bootstrap_interval([]).low)
