"""Selection by worth: send what is likeliest to be evidence until more is not worth its tokens."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from precise_rag.checks import check_number
from precise_rag.selection.gradient import ratio_scores
from precise_rag.selection.names import name_bearers, of_something_else
from precise_rag.tokens import candidate_tokens, estimate_in_english
from precise_rag.types import INSISTENT, UNSCORED, Candidate, Selection, Verdict, best_first

_FEW_TOKENS = 500
_LEAST_SHARE, _LEAST_TOKENS = 0.05, 6
"""What one of the `min_keep` best has: this share of the best one's probability, or so many tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilitySelector:
    """Selector that keeps candidates while they are worth their tokens.

    A candidate with a calibrated probability p is worth p for each of its tokens: that is the share of
    the tokens that the answer needs, on average. What is worth much less than the best is dropped, too: the
    best is then likely to be the answer; where nothing is likely, more is kept. A text that is repeated often
    (`INSISTENT`) does not count as the best, if there is another, nor among what is enough. Repeating a text
    must not raise the bar for others. Where much is alike, the likeliest are enough, as many as hold
    `enough_tokens`; more where even the best is improbable, and of much text. What is said like another,
    but of something else than the question names, gives way to it, see `of_something_else`. A name in the
    question that nothing kept mentions brings one candidate more, see `name_bearers`.

    share_of_best: lowest probability to keep, as a share of the best, in [0, 1]; 0: `min_score` decides.
    min_score: lowest probability to keep in any case, in [0, 1]. If both are 0, `max_tokens` is filled.
    enough_tokens: tokens after which no further candidate is kept; the last one may exceed them. Half as many
        again where the best has no probability. None, or a `share_of_best` of 0: nothing is enough. Steps of
        feedback keep more. Text in other languages and scripts counts as if it was in English, so that enough
        says as much in all of them.
    enough_share: share of all candidates' tokens, in [0, 1]. With p the best probability, enough is
        min(enough_tokens, max(500, share)) × (1.5 - min(p, 0.5)), and at least (1 - p) × share.
    max_tokens: most tokens to keep; default no limit. A candidate that does not fit is dropped; a smaller
        one after it may still fit.
    min_keep: number of the best candidates to keep even if they are worth less, but for a few signs of next
        to no worth; with 0 nothing may be kept.
    count_tokens: counts the tokens of candidates without `n_tokens`; default an estimate.
    assume_ratio: whether to keep, by cosine and rank scores, `enough_tokens` of the best, as the default of
        `PreciseRAG` does without a reranker; default: such scores are refused.
    Raises InputError if a setting is out of range.

    Differs from `GradientSelector`: it looks at each probability, not at drops between them, and at names.
    """

    share_of_best: float = 0.1
    min_score: float = 0.003
    enough_tokens: int | None = 500
    enough_share: float = 1 / 3
    max_tokens: int | None = None
    min_keep: int = 3
    count_tokens: Callable[[str], int] | None = None
    assume_ratio: bool = False

    def __post_init__(self) -> None:
        for name in ("share_of_best", "min_score", "enough_share"):
            check_number(name, getattr(self, name), least=0, most=1)
        check_number("enough_tokens", self.enough_tokens, least=1, whole=True, none="nothing is enough")
        check_number("max_tokens", self.max_tokens, least=1, whole=True, none="no limit")
        check_number("min_keep", self.min_keep, least=0, whole=True)

    def select(self, candidates: Iterable[Candidate], *, query: str = "", step: int = 0) -> Selection:
        """Decide which candidates to keep.

        candidates: with probabilities, logits or BM25 scores, in any order.
        query: the question; without it, names in it bring nothing.
        step: of feedback; each above 0 keeps half as many again, each below a third fewer; below, names bring
            nothing.
        Returns one decision per candidate, best first; `max_tokens` holds at every step.
        Raises ScoreScaleError for cosine and rank scores, unless `assume_ratio` is set.
        """
        candidates = best_first(candidates)
        selection = self._select(candidates, query)
        if step == 0:
            return selection
        n_kept = len(selection.kept)
        by_share, by_one = round(n_kept * 1.5**step), n_kept + step
        wanted = max(1, max(by_one, by_share) if step > 0 else min(by_one, by_share))
        return self._select(candidates, query if step > 0 else "", wanted)

    def _select(self, given: Sequence[Candidate], query: str, wanted: int | None = None) -> Selection:
        """Select at step 0, or as many as feedback wants. given: best first."""
        ranked = [candidate for candidate in given if UNSCORED not in candidate.scores]
        is_logit = any(candidate.score_scale == "logit" for candidate in ranked)
        worths = ratio_scores(ranked, assume_ratio=self.assume_ratio and not is_logit)
        own = [worth for c, worth in zip(ranked, worths, strict=True) if INSISTENT not in c.scores]
        best = max(own or worths, default=0.0)
        lowest = max(self.min_score, self.share_of_best * best) if wanted is None else math.inf
        least = self.min_keep if wanted is None else wanted
        n_first = max(sum(worth >= lowest for worth in worths), min(least, len(ranked)))
        n_first = min(n_first, max(least, self._n_enough(ranked, best)))
        verdicts: list[Verdict] = []
        left = math.inf if self.max_tokens is None else self.max_tokens
        for candidate, worth in zip(ranked[:n_first], worths, strict=False):
            among = "" if worth >= lowest else f", among the best {least}"
            is_tiny = candidate_tokens(candidate, self.count_tokens) < _LEAST_TOKENS
            if among and is_tiny and worth < _LEAST_SHARE * best:
                verdicts.append((candidate, False, f"{worth:.2g} is under {_LEAST_SHARE:g} of the best"))
                continue
            verdict, left = self._if_it_fits(candidate, f"worth {worth:.2g}{among}", left)
            verdicts.append(verdict)
        kept = [candidate for candidate, is_kept, _ in verdicts if is_kept]
        rest = ranked[n_first:]
        like = dict(reversed([*of_something_else(query, [*kept, *rest[:100]])]))
        instead = {like[candidate.id] for candidate in kept if candidate.id in like} - {*like}
        verdicts = [
            (one[0], False, f"like {like[one[0].id]}, but of something else") if one[0].id in like else one
            for one in verdicts
        ]
        verdicts += [
            (candidate, False, self._why_dropped(worth, best, wanted))
            for candidate, worth in zip(rest, worths[n_first:], strict=True)
        ]
        added = {row: "in place of one like it" for row, one in enumerate(rest) if one.id in instead}
        kept = [*(one for one in kept if one.id not in like), *(rest[row] for row in added)]
        added |= {row: f"nothing else kept mentions {name}" for row, name in name_bearers(query, kept, rest)}
        for row, why in added.items():
            reason = f"worth {worths[n_first + row]:.2g}, but {why}"
            verdicts[n_first + row], left = self._if_it_fits(rest[row], reason, left)
        verdicts += [(candidate, False, "it has no usable score") for candidate in given[len(ranked) :]]
        return Selection.of(verdicts)

    def _if_it_fits(self, candidate: Candidate, reason: str, left: float) -> tuple[Verdict, float]:
        """Keep a candidate that fits into the tokens left; returns how many are left then."""
        size = candidate_tokens(candidate, self.count_tokens)
        if size > left:
            reason = f"{size} tokens do not fit in the {left:.0f} left of {self.max_tokens}"
            return (candidate, False, reason), left
        return (candidate, True, reason), left - size

    def _why_dropped(self, worth: float, best: float, wanted: int | None) -> str:
        if wanted is not None:
            return f"{worth:.2g} is not among the best {wanted}"
        if worth < self.min_score:
            return f"{worth:.2g} is under min_score {self.min_score:g}"
        if worth < self.share_of_best * best:
            return f"{worth:.2g} is under {self.share_of_best:g} of the best, {best:.2g}"
        return (
            f"worth {worth:.2g}, but what is likelier has enough tokens (enough_tokens {self.enough_tokens})"
        )

    def _n_enough(self, ranked: Sequence[Candidate], best: float) -> int:
        """How many of the best candidates hold enough tokens, without those that are repeated often."""
        if self.enough_tokens is None or not self.share_of_best:
            return len(ranked)
        tokens = [0 if INSISTENT in c.scores else self._usual_tokens(c) for c in ranked]
        share = self.enough_share * sum(tokens)
        enough = min(self.enough_tokens, max(_FEW_TOKENS, share)) * (1.5 - min(best, 0.5))
        enough = max(enough, (1 - best) * share)
        return min(len(ranked), sum(before < enough for before in accumulate(tokens, initial=0)))

    def _usual_tokens(self, candidate: Candidate) -> int:
        """Tokens, in other languages those of the same in English: enough is as much text in all of them."""
        n_tokens = candidate_tokens(candidate, self.count_tokens)
        return n_tokens if candidate.text.isascii() else min(n_tokens, estimate_in_english(candidate.text))
