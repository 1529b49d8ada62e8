"""From which score on a chunk is relevant, read from the scores of one query. Pure.

Source: ChunkRAG, section 3: a threshold from the distribution of the scores, raised when they
cluster tightly. The bounds are ours: a mean always drops some of a good list and keeps some of a
bad one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from precise_rag.errors import InputError


class Threshold(NamedTuple):
    """Keep scores of `value` and above; `reason` says where it comes from."""

    value: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicThreshold:
    """The mean of the scores, plus one standard deviation when that is under `tight`, and never
    more than the best score.

    floor, ceiling: the threshold stays between them, so that a score under `floor` is never and
    one over `ceiling` always relevant; 0 and 1 leave the paper's threshold as it is. min_keep: so
    many of the best are kept even under the threshold, as long as they reach the floor. When no
    score reaches it, nothing is relevant.
    """

    tight: float = 0.1
    floor: float = 0.3
    ceiling: float = 0.8
    min_keep: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.floor <= self.ceiling <= 1.0:
            raise InputError(
                f"floor is {self.floor} and ceiling {self.ceiling}; expected 0 <= floor <= ceiling <= 1"
            )
        if self.tight < 0.0 or self.min_keep < 0:
            raise InputError(f"tight is {self.tight} and min_keep {self.min_keep}; neither may be negative")

    def of(self, scores: Sequence[float]) -> Threshold:
        """The threshold for these scores, which may be in any order.

        >>> DynamicThreshold().of([0.9, 0.5, 0.1])
        Threshold(value=0.5, reason='mean of 3 scores')
        """
        if not scores:
            return Threshold(self.floor, "the floor")
        value = fmean(scores)
        spread = sqrt(fmean((score - value) ** 2 for score in scores))
        reason = f"mean of {len(scores)} scores"
        if spread < self.tight:
            value += spread
            reason += " plus their standard deviation"
        return self.bounded(min(value, max(scores)), reason)

    def bounded(self, value: float, reason: str) -> Threshold:
        """A threshold at `value`, or at the bound that it lies beyond."""
        if value < self.floor:
            return Threshold(self.floor, "the floor")
        if value > self.ceiling:
            return Threshold(self.ceiling, "the ceiling")
        return Threshold(value, reason)

    def relevant(self, scores: Sequence[float], threshold: Threshold) -> list[bool]:
        """Which of the scores are kept under `threshold` and the rules of this object."""
        best = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[: self.min_keep]
        return [
            score >= threshold.value or (row in best and score >= self.floor)
            for row, score in enumerate(scores)
        ]
