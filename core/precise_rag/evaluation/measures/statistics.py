"""Bootstrap intervals and paired tests of the difference between two pipelines.

`groups` names the group of each value, for example the document of its question. Questions about one
document are not independent, so groups are resampled and swapped as a whole.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.evaluation.measures.evidence import Values

N_RESAMPLES = 2000
"""Default number of resamples."""
_BLOCK = 256
"""Resamples drawn at once; limits the memory."""


class Interval(NamedTuple):
    """A mean with the lower and upper bound of its confidence interval."""

    mean: float
    low: float
    high: float


class Comparison(NamedTuple):
    """A compared with B over the same questions.

    difference: mean of A minus B, with its interval. p_value: two-sided. wins, losses, ties: numbers of
    questions where A is better, worse and equal.
    """

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
    """Compute the mean of `values` with a percentile bootstrap interval.

    values: (n,).
    groups: (n,) group of each value; default: each value is a group.
    confidence: in (0, 1).
    n_resamples, seed: of the bootstrap.

    Without values the mean and both bounds are NaN. Raises InputError if a value is NaN.
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
    """Compare A with B question by question, with a sign-flip randomisation test.

    a, b: (n,) values of the same questions in the same order.
    groups, confidence, n_resamples, seed: as for `bootstrap_interval`.

    Raises InputError if the two differ in length or a value is NaN.
    """
    left, right = _checked(a), _checked(b)
    if left.shape != right.shape:
        raise InputError(f"a and b must hold the same questions, got {len(left)} and {len(right)} values")
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
    """Compare A with B over several sets, each with the same weight.

    The difference is the mean of the sets' mean differences. Groups are resampled within their set, and
    signs are flipped in all sets together.

    pairs: for each set, the values of A, the values of B, and the groups or None.
    confidence, n_resamples, seed: as for `bootstrap_interval`.

    Raises InputError if A and B differ in length, a set is empty or a value is NaN.
    """
    gains, sums, sizes = [], [], []
    for a, b, groups in pairs:
        left, right = _checked(a), _checked(b)
        if left.shape != right.shape or not len(left):
            raise InputError(
                "a and b must hold the same questions of a set, at least one, "
                f"got {len(left)} and {len(right)} values"
            )
        gains.append(left - right)
        of_set = _grouped(left - right, groups)
        sums.append(of_set[0])
        sizes.append(of_set[1])
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
    """extreme: number of resamples under no difference that differ at least as much as the data."""
    wins, losses, ties = (int(which.sum()) for which in (gain > 0, gain < 0, gain == 0))
    return Comparison(interval, (extreme + 1) / (n_resamples + 1), wins, losses, ties)


def _checked(values: npt.ArrayLike) -> Values:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"values must be one number per question, got an array of shape {array.shape}")
    if np.isnan(array).any():
        raise InputError(
            f"values must be numbers, got NaN for {int(np.isnan(array).sum())} of {len(array)}; "
            "leave these questions out"
        )
    return array


def _grouped(values: Values, groups: Sequence[Hashable] | None) -> tuple[Values, Values]:
    """Return the sum and the number of values of each group."""
    if groups is None:
        return values, np.ones(len(values))
    if len(groups) != len(values):
        raise InputError(
            f"groups must name one group per value, got {len(groups)} groups for {len(values)} values"
        )
    rows = {group: row for row, group in enumerate(dict.fromkeys(groups))}
    index = np.array([rows[group] for group in groups], dtype=np.int64)
    sums, sizes = np.bincount(index, values, len(rows)), np.bincount(index, minlength=len(rows))
    return sums.astype(np.float64), sizes.astype(np.float64)


def _blocks(total: int) -> list[int]:
    return [min(_BLOCK, total - done) for done in range(0, total, _BLOCK)]
