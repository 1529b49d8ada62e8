"""What a difference between two pipelines is worth: bootstrap intervals and paired tests.

Both can be told which questions belong together (`groups`, for instance their documents).
Questions about one document are no independent witnesses; groups are then drawn, or swapped, whole.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.evaluation.measures.evidence import Values

N_RESAMPLES = 2000
_BLOCK = 256
"""Resamples drawn at once, which bounds the memory."""


class Interval(NamedTuple):
    """A mean and the bounds between which it lies with the given confidence."""

    mean: float
    low: float
    high: float


class Comparison(NamedTuple):
    """A minus B over the same questions: the mean difference, its interval and a two-sided p-value."""

    difference: Interval
    p_value: float
    wins: int
    losses: int
    ties: int


def bootstrap_interval(
    values: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The mean of `values` with a percentile bootstrap interval; NaN bounds for no values.

    Raises InputError if a value is NaN: leave such questions out and say so.
    """
    sums, sizes = _grouped(_checked(values), groups)
    if not sizes.sum():
        return Interval(np.nan, np.nan, np.nan)
    draw = np.random.default_rng(seed)
    weights = np.full(len(sums), 1 / len(sums))
    means = np.concatenate(
        [
            (counts @ sums) / (counts @ sizes)
            for block in _blocks(n_resamples)
            for counts in (draw.multinomial(len(sums), weights, size=block),)
        ]
    )
    tail = 50 * (1 - confidence)
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(float(sums.sum() / sizes.sum()), float(low), float(high))


def compare_paired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """A against B, question by question, with a sign-flip randomisation test of no difference.

    Raises InputError if the two differ in length.
    """
    left, right = _checked(a), _checked(b)
    if left.shape != right.shape:
        raise InputError(f"{len(left)} values against {len(right)}: compare the same questions, in one order")
    gain = left - right
    interval = bootstrap_interval(
        gain, groups=groups, confidence=confidence, n_resamples=n_resamples, seed=seed
    )
    sums, _ = _grouped(gain, groups)
    draw = np.random.default_rng(seed)
    observed = abs(sums.sum()) - 1e-9
    extreme = sum(
        int((np.abs((2 * draw.integers(0, 2, size=(block, len(sums))) - 1) @ sums) >= observed).sum())
        for block in _blocks(n_resamples)
    )
    return _comparison(interval, extreme, n_resamples, gain)


def compare_over_sets(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike, Sequence[Hashable] | None]],
    *,
    confidence: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """A against B over several sets that count the same, however many questions each has.

    pairs: for each set A's values, B's and the groups of the questions. The difference is the mean of
    the sets' mean differences; groups are drawn within their set, and signs are flipped in all sets at
    once. Raises InputError if A and B differ in length, or a set is empty.
    """
    gains, sums, sizes = [], [], []
    for a, b, groups in pairs:
        left, right = _checked(a), _checked(b)
        if left.shape != right.shape or not len(left):
            raise InputError(f"{len(left)} values against {len(right)}; expected as many, and at least one")
        gains.append(left - right)
        found = _grouped(left - right, groups)
        sums.append(found[0])
        sizes.append(found[1])
    draw = np.random.default_rng(seed)
    difference = float(np.mean([gain.mean() for gain in gains]))
    drawn, extreme = [], 0
    for block in _blocks(n_resamples):
        resampled, flipped = np.zeros(block), np.zeros(block)
        for total, size in zip(sums, sizes, strict=True):
            counts = draw.multinomial(len(total), np.full(len(total), 1 / len(total)), size=block)
            resampled += (counts @ total) / (counts @ size) / len(sums)
            signs = 2 * draw.integers(0, 2, size=(block, len(total))) - 1
            flipped += (signs @ total) / size.sum() / len(sums)
        drawn.append(resampled)
        extreme += int((np.abs(flipped) >= abs(difference) - 1e-12).sum())
    tail = 50 * (1 - confidence)
    low, high = np.percentile(np.concatenate(drawn), [tail, 100 - tail])
    interval = Interval(difference, float(low), float(high))
    return _comparison(interval, extreme, n_resamples, np.concatenate(gains))


def _comparison(interval: Interval, extreme: int, n_resamples: int, gain: Values) -> Comparison:
    """extreme: how many of the resamples without a difference differ as much as what was seen."""
    wins, losses, ties = (int(found.sum()) for found in (gain > 0, gain < 0, gain == 0))
    return Comparison(interval, (extreme + 1) / (n_resamples + 1), wins, losses, ties)


def _checked(values: npt.ArrayLike) -> Values:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"expected one value a question, got an array of shape {array.shape}")
    if np.isnan(array).any():
        raise InputError(f"{int(np.isnan(array).sum())} of {len(array)} values are NaN; leave them out first")
    return array


def _grouped(values: Values, groups: Sequence[Hashable] | None) -> tuple[Values, Values]:
    """Sum and number of values per group; each value is its own group where none are given."""
    if groups is None:
        return values, np.ones(len(values))
    if len(groups) != len(values):
        raise InputError(f"{len(groups)} groups for {len(values)} values; give one a value")
    rows = {group: row for row, group in enumerate(dict.fromkeys(groups))}
    index = np.array([rows[group] for group in groups], dtype=np.int64)
    sums, sizes = np.bincount(index, values, len(rows)), np.bincount(index, minlength=len(rows))
    return sums.astype(np.float64), sizes.astype(np.float64)


def _blocks(total: int) -> list[int]:
    return [min(_BLOCK, total - done) for done in range(0, total, _BLOCK)]
