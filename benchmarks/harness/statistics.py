"""Intervals of means, and paired comparisons of two pipelines, by scipy.

Questions about one document are not independent: its questions are a group, and groups are redrawn, and their
signs flipped, as a whole. Over several sets, each set counts the same, and groups are redrawn within their
set.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.harness.evidence import Values

N_RESAMPLES = 2000
SIGNIFICANT = 0.05
"""p-value below which a difference is marked."""


class Interval(NamedTuple):
    """A mean with the lower and upper bound of its 95 % confidence interval."""

    mean: float
    low: float
    high: float


class Comparison(NamedTuple):
    """A compared with B over the same questions: the mean of A minus B, and a two-sided p-value."""

    difference: Interval
    p_value: float


Grouped = tuple[npt.ArrayLike, Sequence[Hashable] | None]
"""The values of a set's questions, and the group of each; None: each question is a group."""


def mean_interval(values: npt.ArrayLike, groups: Sequence[Hashable] | None = None) -> Interval:
    """Compute the mean of one value for each question, with a percentile bootstrap interval."""
    return _interval([_by_group(values, groups)])


def compare_over_sets(differences: Sequence[Grouped]) -> Comparison:
    """Compare A with B over sets of the same weight, by a paired sign-flip test.

    differences: A minus B for each question of a set.
    """
    sets = [_by_group(values, groups) for values, groups in differences]
    sums = np.concatenate([total / sizes.sum() / len(sets) for total, sizes in sets])
    if len(sums) < 2 or not sums.any():
        return Comparison(_interval(sets), 1.0)
    tested = stats.permutation_test(
        (sums,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=N_RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return Comparison(_interval(sets), float(tested.pvalue))


def _interval(sets: Sequence[tuple[Values, Values]]) -> Interval:
    """sets: the sums and the sizes of each set's groups."""

    def mean(*rows: npt.NDArray[np.int64], axis: int) -> Values:
        parts = [
            total[row].sum(axis=axis) / sizes[row].sum(axis=axis)
            for (total, sizes), row in zip(sets, rows, strict=True)
        ]
        return np.mean(parts, axis=0)

    rows = [np.arange(len(total)) for total, _ in sets]
    here = float(mean(*rows, axis=-1))
    if min(map(len, rows)) < 2:
        return Interval(here, here, here)
    found = stats.bootstrap(
        rows,
        mean,
        method="percentile",
        vectorized=True,
        n_resamples=N_RESAMPLES,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Interval(here, float(found.low), float(found.high))


def _by_group(values: npt.ArrayLike, groups: Sequence[Hashable] | None) -> tuple[Values, Values]:
    """Return the sum and the number of the values of each group. Raises ValueError for a NaN or no values."""
    array = np.asarray(values, dtype=np.float64)
    if not len(array) or np.isnan(array).any():
        raise ValueError(f"{np.isnan(array).sum()} of {len(array)} values are no numbers; leave them out")
    rows = {group: row for row, group in enumerate(dict.fromkeys(groups or range(len(array))))}
    index = np.array([rows[group] for group in groups or range(len(array))])
    sizes = np.bincount(index, minlength=len(rows)).astype(np.float64)
    return np.bincount(index, array, len(rows)).astype(np.float64), sizes
