"""Decide after each round whether to accept the answer, change the context, or stop. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from precise_rag.answer import Round
from precise_rag.checks import check_number
from precise_rag.types import Selection


class Step(NamedTuple):
    """The `min_k` of the next round, or None to stop, and the reason."""

    min_k: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackController:
    """The rules of the feedback loop (SAGE, section VI-A).

    min_k: `min_k` of the first round, at least 1.
    accept: the loop ends with an answer of at least this score, from 1 to 10.
    max_rounds: most drafts that are written and judged; 0 writes one draft and judges none.
    reach: most steps that `min_k` moves after one judgement, until the selection changes. The paper moves
        one step, which may select the same chunks again.

    Differs from the paper: the judge may ask for no change, which ends the loop. So does a `min_k` or a
    selection that was tried before. The answer is the draft with the best score, not the last one.
    """

    min_k: int = 7
    accept: int = 9
    max_rounds: int = 3
    reach: int = 1

    def __post_init__(self) -> None:
        for name, least in (("min_k", 1), ("reach", 1), ("max_rounds", 0)):
            check_number(name, getattr(self, name), least=least, whole=True)
        check_number("accept", self.accept, least=1, most=10)

    def next_step(self, rounds: Sequence[Round]) -> Step:
        """Return the step after the last of `rounds`."""
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
            return Step(None, "the judge asks for the same context")
        min_k = last.min_k + adjustment
        if min_k < 1:
            return Step(None, "there cannot be less context than one chunk")
        if any(turn.min_k == min_k for turn in rounds):
            return Step(None, f"the adjustments oscillate: min_k {min_k} was tried before")
        return Step(min_k, f"{'more' if adjustment > 0 else 'less'} context: min_k {min_k}")

    def steps_from(self, min_k: int, rounds: Sequence[Round]) -> range:
        """Return the values of `min_k` to try in order until one gives a new selection."""
        if not rounds or min_k > rounds[-1].min_k:
            return range(min_k, min_k + (self.reach if rounds else 1))
        return range(min_k, max(min_k - self.reach, 0), -1)

    def is_new(self, selection: Selection, rounds: Sequence[Round]) -> bool:
        """Return whether no round so far had the chunks that `selection` keeps."""
        kept = [candidate.id for candidate in selection.kept]
        return all(kept != [candidate.id for candidate in turn.selection.kept] for turn in rounds)

    def best(self, rounds: Sequence[Round]) -> Round:
        """Return the round with the best score, the earliest of equals; without any score, the last round."""
        judged = [turn for turn in rounds if _score(turn) is not None]
        return max(judged, key=lambda turn: _score(turn) or 0) if judged else rounds[-1]


def _score(turn: Round) -> int | None:
    return turn.judgement.score if turn.judgement else None


_UNSCORED = {"unparsed": "the judgement could not be read", "failed": "the judge failed"}
