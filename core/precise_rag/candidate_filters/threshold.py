"""A relevance threshold from the scores of one query.

Source: ChunkRAG, section 3: a threshold from the distribution of the scores, raised if they cluster
tightly. The bounds are ours: without them the mean drops part of a list in which every chunk is
relevant, and keeps part of one in which none is. The cap is ours, too: without it a few chunks that talk
the model into the highest score lift the mean over every honest chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from precise_rag.checks import check_number, items_of
from precise_rag.errors import InputError


class Threshold(NamedTuple):
    """Scores of `value` and above are relevant; `reason` says how the value was found."""

    value: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicThreshold:
    """A threshold at the mean of the scores, plus their standard deviation if that is small.

    It is never above the best score.

    tight: the standard deviation is added if it is below this.
    min_score: lowest threshold, in [0, 1]. A chunk that scores less is never kept.
    ceiling: highest threshold, in [0, 1]. A chunk that scores at least this is always kept.
    cap: highest value, in [0, 1], to which scores within `tight` of 1 lift the threshold over the one that
        the other scores alone give. They never lift it over the best of the others. None for no cap.
    min_keep: number of chunks kept even under the threshold, best first, if they reach `min_score`.

    min_score=0, ceiling=1 and cap=None give the paper's threshold.
    """

    tight: float = 0.1
    min_score: float = 0.3
    ceiling: float = 0.8
    cap: float | None = 0.6
    min_keep: int = 0

    def __post_init__(self) -> None:
        for name in ("min_score", "ceiling"):
            check_number(name, getattr(self, name))
        check_number("cap", self.cap, least=0, most=1, none="no cap")
        check_number("tight", self.tight, least=0)
        check_number("min_keep", self.min_keep, least=0, whole=True)
        if not 0.0 <= self.min_score <= self.ceiling <= 1.0:
            raise InputError(
                "min_score and ceiling must satisfy 0 <= min_score <= ceiling <= 1, "
                f"got min_score={self.min_score}, ceiling={self.ceiling}"
            )

    def of(self, scores: Sequence[float]) -> Threshold:
        """Return the threshold for `scores`, which may be in any order.

        >>> DynamicThreshold().of([0.9, 0.5, 0.1])
        Threshold(value=0.5, reason='mean of 3 scores')
        """
        for score in items_of("scores", scores, object):
            check_number("a score", score)
        threshold = self._around_mean(scores)
        others = [score for score in scores if score < 1.0 - self.tight]
        if self.cap is None or not others or len(others) == len(scores):
            return threshold
        highest = max(self._around_mean(others).value, min(self.cap, max(others)))
        if not any(highest <= score < threshold.value for score in others):
            return threshold
        n_near = len(scores) - len(others)
        return Threshold(highest, f"capped, for {n_near} of {len(scores)} scores are near 1")

    def _around_mean(self, scores: Sequence[float]) -> Threshold:
        if not scores:
            return Threshold(self.min_score, "min_score")
        value = fmean(scores)
        spread = sqrt(fmean((score - value) ** 2 for score in scores))
        reason = f"mean of {len(scores)} scores"
        if spread < self.tight:
            value += spread
            reason += " plus their standard deviation"
        return self.bounded(min(value, max(scores)), reason)

    def bounded(self, value: float, reason: str) -> Threshold:
        """Return a threshold at `value`, or at `min_score` or the ceiling if it lies outside them."""
        if value < self.min_score:
            return Threshold(self.min_score, "min_score")
        if value > self.ceiling:
            return Threshold(self.ceiling, "the ceiling")
        return Threshold(value, reason)

    def relevant(self, scores: Sequence[float], threshold: Threshold) -> list[bool]:
        """Return, for each score, whether it reaches `threshold`, or is kept by `min_keep`."""
        best = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[: self.min_keep]
        return [
            score >= threshold.value or (row in best and score >= self.min_score)
            for row, score in enumerate(scores)
        ]
