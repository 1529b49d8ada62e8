"""What to do after each round: accept, try more or less context, or stop. Pure: no model, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from precise_rag.answer import Round
from precise_rag.errors import InputError
from precise_rag.types import Selection


class Step(NamedTuple):
    """The `min_k` of the next round, or None to stop, and the reason in words."""

    min_k: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackController:
    """The rules of the feedback loop (SAGE, section VI-A).

    min_k: of the first round. accept: a score at or above it ends the loop. max_rounds: drafts that
    are written and judged at most; 0 writes one and asks no judge. reach: how many steps of `min_k`
    one judgement may take until the selection changes. The paper takes one; a gradient selection
    that keeps more than `min_k` anyway often changes only some steps further on.

    Differs from the paper: an adjustment of 0 is allowed and ends the loop; so does a `min_k` that
    was tried before (the adjustments oscillate) or a selection that was; and of all drafts the one
    with the best score is the answer, not the last.
    """

    min_k: int = 7
    accept: int = 9
    max_rounds: int = 3
    reach: int = 1

    def __post_init__(self) -> None:
        if min(self.min_k, self.reach) < 1 or self.max_rounds < 0 or not 1 <= self.accept <= 10:
            raise InputError(
                f"min_k is {self.min_k}, reach {self.reach}, max_rounds {self.max_rounds}, "
                f"accept {self.accept}; expected at least 1, at least 1, at least 0, and 1 to 10"
            )

    def next_step(self, rounds: Sequence[Round]) -> Step:
        """What follows the last of `rounds`."""
        last = rounds[-1]
        if last.judgement is None:
            return Step(None, "not judged")
        score, adjustment = last.judgement.score, last.judgement.adjustment
        if score is None:
            return Step(None, _UNSCORED[last.judgement.status])
        if score >= self.accept:
            return Step(None, f"accepted with {score} of 10")
        if len(rounds) >= self.max_rounds:
            return Step(None, f"round {len(rounds)} was the last")
        if adjustment == 0:
            return Step(None, "the judge asks for no other context")
        min_k = last.min_k + adjustment
        if min_k < 1:
            return Step(None, "less context than one chunk is not possible")
        if any(turn.min_k == min_k for turn in rounds):
            return Step(None, f"the adjustments oscillate: min_k {min_k} was tried before")
        return Step(min_k, f"{'more' if adjustment > 0 else 'less'} context: min_k {min_k}")

    def steps_from(self, min_k: int, rounds: Sequence[Round]) -> range:
        """The values of `min_k` to try in turn until one gives a new selection."""
        if not rounds or min_k > rounds[-1].min_k:
            return range(min_k, min_k + (self.reach if rounds else 1))
        return range(min_k, max(min_k - self.reach, 0), -1)

    def is_new(self, selection: Selection, rounds: Sequence[Round]) -> bool:
        """Whether `selection` keeps other chunks than every round so far."""
        kept = [candidate.id for candidate in selection.kept]
        return all(kept != [candidate.id for candidate in turn.selection.kept] for turn in rounds)

    def best(self, rounds: Sequence[Round]) -> Round:
        """The round with the best score, the earliest of several; without scores, the last."""
        judged = [turn for turn in rounds if turn.judgement and turn.judgement.score is not None]
        return max(judged, key=_score) if judged else rounds[-1]


def _score(turn: Round) -> int:
    return turn.judgement.score or 0 if turn.judgement else 0


_UNSCORED = {"unparsed": "the judgement could not be read", "failed": "the judge failed"}
