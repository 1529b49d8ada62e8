"""Selection by worth: send what is likeliest to be evidence until more is not worth its tokens."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from precise_rag.checks import check_number
from precise_rag.selection.ratios import ratio_scores
from precise_rag.tokens import estimate_tokens
from precise_rag.types import UNSCORED, Candidate, Selection, best_first


@dataclass(frozen=True, slots=True, kw_only=True)
class WorthSelector:
    """Selector that keeps candidates while they are worth their tokens.

    A candidate with a calibrated probability p is worth p for each of its tokens: that is the share of
    the tokens that the answer needs, on average. What is worth much less than the best is dropped, too: the
    best is then likely to be the answer; where nothing is likely, more is kept.

    ratio: the lowest worth to keep, as a share of the best candidate's, in [0, 1].
    threshold: the lowest worth to keep in any case, in [0, 1]. Both 0 fill `max_tokens`.
    max_tokens: most tokens to keep; default no limit. A candidate that does not fit is dropped; a smaller
        one after it may still fit.
    min_keep: number of the best candidates to keep even if they are worth less; with 0 nothing may be kept.
    count_tokens: counts the tokens of candidates without `n_tokens`; default an estimate.
    Raises InputError if a setting is out of range.

    Differs from `GradientSelector`: it looks at each probability, not at drops between them.
    """

    ratio: float = 0.05
    threshold: float = 0.01
    max_tokens: int | None = None
    min_keep: int = 3
    count_tokens: Callable[[str], int] | None = None

    def __post_init__(self) -> None:
        check_number("ratio", self.ratio, least=0, most=1)
        check_number("threshold", self.threshold, least=0, most=1)
        check_number("max_tokens", self.max_tokens, least=1, whole=True, none="no limit")
        check_number("min_keep", self.min_keep, least=0, whole=True)

    @property
    def min_k(self) -> int:
        """The number from which feedback counts its steps, see `select_at`."""
        return max(1, self.min_keep)

    def select(self, candidates: Iterable[Candidate]) -> Selection:
        """Decide which candidates to keep.

        candidates: with probabilities or logits, in any order.
        Returns one decision per candidate, best first.
        Raises ScoreScaleError for scores on other scales.
        """
        given = best_first(candidates)
        ranked = [candidate for candidate in given if UNSCORED not in candidate.scores]
        verdicts: list[tuple[Candidate, bool, str]] = []
        n_tokens = 0
        worths = ratio_scores(ranked)
        lowest = max(self.threshold, self.ratio * max(worths, default=0.0))
        for rank, (candidate, worth) in enumerate(zip(ranked, worths, strict=True)):
            if worth < lowest and rank >= self.min_keep:
                verdicts.append((candidate, False, self._why_dropped(worth, worths[0])))
                continue
            size = self._tokens(candidate)
            left = None if self.max_tokens is None else self.max_tokens - n_tokens
            if left is not None and size > left:
                reason = f"{size} tokens do not fit in the {left} left of {self.max_tokens}"
                verdicts.append((candidate, False, reason))
                continue
            n_tokens += size
            is_worth = worth >= lowest
            reason = f"worth {worth:.2g}" if is_worth else f"{worth:.2g}, among the best {self.min_keep}"
            verdicts.append((candidate, True, reason))
        verdicts += [(candidate, False, "it has no usable score") for candidate in given[len(ranked) :]]
        return Selection.of(verdicts)

    def select_at(self, candidates: Iterable[Candidate], min_k: int) -> Selection:
        """Select as feedback asks: more or fewer candidates than `select` keeps.

        candidates: in any order.
        min_k: feedback's; each step above or below `self.min_k` keeps half as many again, or a third fewer.
        Returns one decision per candidate, best first; `max_tokens` still holds.
        """
        candidates = list(candidates)
        selection = self.select(candidates)
        step = min_k - self.min_k
        if step == 0:
            return selection
        n_kept = len(selection.kept)
        wanted = max(1, n_kept + step, round(n_kept * 1.5**step) if step > 0 else 0)
        if step < 0:
            wanted = max(1, min(n_kept + step, round(n_kept * 1.5**step)))
        chosen = replace(self, threshold=1.0, min_keep=wanted)
        return chosen.select(candidates)

    def _why_dropped(self, worth: float, best: float) -> str:
        if worth < self.threshold:
            return f"{worth:.2g} is under the threshold {self.threshold:g}"
        return f"{worth:.2g} is under {self.ratio:g} of the best, {best:.2g}"

    def _tokens(self, candidate: Candidate) -> int:
        if candidate.n_tokens is not None:
            return candidate.n_tokens
        return (self.count_tokens or estimate_tokens)(candidate.text)
