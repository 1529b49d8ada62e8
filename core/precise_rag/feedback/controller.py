"""Decide after each round whether to accept the answer, change the context, or stop. Pure functions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from precise_rag.answer import Round
from precise_rag.checks import check_number


class NextStep(NamedTuple):
    """The step of the next round's selection, see `Selector`, or None to stop; and the reason."""

    step: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackController:
    """The rules of the feedback loop (SAGE, section VI-A).

    accept: the loop ends with an answer of at least this score, from 1 to 10.
    max_rounds: most drafts that are written and judged; 0 writes one draft and judges none.
    reach: most steps after one judgement, until the selection changes. The paper moves one step, which may
        select the same chunks again.

    The first round selects at step 0. Where the paper changes `min_k`, the selector is asked for a step more
    or less. Differs, too: the judge may ask for no change, which ends the loop. So does a step, a selection
    or a draft that there was before. A draft that is no answer is not judged and asks for more context. The
    answer is the draft with the best score, not the last one.
    """

    accept: int = 9
    max_rounds: int = 3
    reach: int = 50

    def __post_init__(self) -> None:
        for name, least in (("reach", 1), ("max_rounds", 0)):
            check_number(name, getattr(self, name), least=least, whole=True)
        check_number("accept", self.accept, least=1, most=10)

    def next_step(self, rounds: Sequence[Round]) -> NextStep:
        """Return the step after the last of `rounds`."""
        last = rounds[-1]
        adjustment = 1
        if not last.problem:
            if last.judgement is None:
                return NextStep(None, "not judged")
            score, adjustment = last.judgement.score, last.judgement.adjustment
            if score is None:
                return NextStep(None, _UNSCORED[last.judgement.status])
            if score >= self.accept:
                return NextStep(None, f"accepted with {score} of 10")
        if any((turn.problem or turn.text) == (last.problem or last.text) for turn in rounds[:-1]):
            return NextStep(None, "the draft is the same as before")
        if len(rounds) >= self.max_rounds:
            return NextStep(None, f"round {len(rounds)} was the last")
        if adjustment == 0:
            return NextStep(None, "the judge asks for the same context")
        step = last.step + adjustment
        if any(turn.step == step for turn in rounds):
            return NextStep(None, f"the adjustments oscillate: step {step:+d} was tried before")
        return NextStep(step, f"{'more' if adjustment > 0 else 'less'} context: step {step:+d}")

    def steps_from(self, step: int, rounds: Sequence[Round]) -> Iterator[int]:
        """Yield the steps to try in order until one gives a new selection, up to one that was tried."""
        tried = {turn.step for turn in rounds}
        way = 1 if rounds and step > rounds[-1].step else -1
        steps = range(step, step + way * (self.reach if rounds else 1), way)
        return takewhile(lambda step: step not in tried, steps)

    def best(self, rounds: Sequence[Round]) -> Round:
        """Return the round with the best score; of equals, or without scores, the one with most context."""
        return max(reversed(rounds), key=lambda one: ((one.judgement and one.judgement.score) or 0, one.step))


_UNSCORED = {"unparsed": "the judgement could not be read", "failed": "the judge failed"}
