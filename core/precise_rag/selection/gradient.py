"""How many candidates to keep, read from the scores themselves.

Source: SAGE, section V, with the cases of its Figs. 8 and 9. Ratios of neighbouring scores mean
something only on a non-negative ratio scale, so every score's scale is checked first.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from precise_rag.errors import InputError
from precise_rag.selection.ratios import ratio_scores
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Decision, Selection, best_first


def gradient_cut(scores: Sequence[float], *, min_k: int, ratio: float, min_gap: float = 0.0) -> int:
    """How many of the falling, non-negative `scores` come before the first sharp drop.

    The first `min_k` are not looked at. After them, a drop is sharp when the score is not above
    `ratio` times its predecessor, and lies at least `min_gap` under it.
    Source: SAGE, section V-B. Differs: Algorithm 2 compares with one fixed score and `1/g`; the
    text and Figs. 8 and 9 compare with the predecessor and a ratio of 0.3, as here. `min_gap` is
    ours.

    >>> gradient_cut([0.9, 0.8, 0.1, 0.09], min_k=1, ratio=0.3)
    2
    """
    for rank in range(min_k, len(scores)):
        before, score = scores[rank - 1], scores[rank]
        if score <= ratio * before and before - score >= min_gap:
            return rank
    return len(scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientSelector:
    """Keeps the best candidates up to the first sharp drop of the score.

    min_k: how many are kept before the drop is looked for. ratio: a score at or under `ratio`
    times its predecessor is a sharp drop. min_gap: a drop smaller than this is never sharp.
    floor: what scores under it is not kept; in units of the score (a probability for logits).
    min_keep: so many of the best are kept even under the floor.
    max_k, max_tokens: hard limits; a candidate that does not fit in the tokens left is passed
    over, and smaller ones after it may still fit. count_tokens: for candidates without `n_tokens`;
    by default an estimate, marked as one in the reason.
    assume_ratio: take cosine or rank scores as a ratio scale.

    The limits outrank `min_keep`, that the floor, and the floor `min_k`: with a floor, fewer than
    `min_k` may be kept, and with `min_keep` 0 none at all when nothing is relevant. Without a floor
    the best is always kept, the limits permitting.
    """

    min_k: int = 7
    ratio: float = 0.3
    max_k: int | None = None
    max_tokens: int | None = None
    floor: float | None = None
    min_keep: int = 0
    min_gap: float = 0.0
    count_tokens: Callable[[str], int] | None = None
    assume_ratio: bool = False

    def __post_init__(self) -> None:
        if self.min_k < 1:
            raise InputError(f"min_k is {self.min_k}; it must be at least 1 (use floor to keep nothing)")
        if not 0.0 <= self.ratio <= 1.0:
            raise InputError(f"ratio is {self.ratio}; it must lie in [0, 1]")
        for name in ("min_gap", "min_keep"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}; it must not be negative")
        for name in ("max_k", "max_tokens"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise InputError(f"{name} is {limit}; it must be at least 1, or None for no limit")

    def select(self, candidates: Iterable[Candidate]) -> Selection:
        """One decision with its reason per candidate, best first.

        Raises ScoreScaleError for scores that have no ratios (see `ratio_scores`).
        """
        ranked = best_first(candidates)
        scores = ratio_scores(ranked, assume_ratio=self.assume_ratio)
        cut = gradient_cut(scores, min_k=self.min_k, ratio=self.ratio, min_gap=self.min_gap)
        decisions: list[Decision] = []
        n_kept = n_tokens = 0
        for rank, candidate in enumerate(ranked):
            reason = self._against(scores, rank, cut, n_kept)
            if not reason and self.max_tokens is not None:
                size, about = self._tokens(candidate)
                left = self.max_tokens - n_tokens
                if size > left:
                    reason = f"{about}{size} tokens do not fit in the {left} left of {self.max_tokens}"
                else:
                    n_tokens += size
            kept = not reason
            n_kept += kept
            decisions.append(Decision(rank + 1, candidate, kept, reason or self._why_kept(scores, rank)))
        return Selection(tuple(decisions))

    def select_at(self, candidates: Iterable[Candidate], min_k: int) -> Selection:
        """The selection that feedback asks for by another `min_k`: one more kept, or one fewer, a step.

        Source: SAGE, section VI-A. Differs: there `min_k` alone changes, which does nothing where the
        gradient keeps more than `min_k` anyway, or a floor fewer; here the number kept moves with it,
        within `max_k` and `max_tokens`. At the selector's own `min_k` it is `select`.
        """
        candidates = list(candidates)
        selection = self.select(candidates)
        step = min_k - self.min_k
        n_kept = max(1, len(selection.kept) + step)
        if step > 0:
            return replace(self, min_k=max(min_k, n_kept), min_keep=n_kept).select(candidates)
        if step < 0:
            return replace(self, max_k=n_kept).select(candidates)
        return selection

    def _against(self, scores: Sequence[float], rank: int, cut: int, n_kept: int) -> str:
        """Why this rank is dropped, tokens aside; empty if nothing speaks against it."""
        score = scores[rank]
        if self.floor is not None and score < self.floor and rank >= self.min_keep:
            return f"{score:.4g} is under the floor {self.floor:.4g}"
        if rank == cut:
            before = scores[rank - 1]
            return f"sharp drop: {score:.4g} is not above {self.ratio:.4g} × {before:.4g}"
        if rank > cut:
            return f"after the sharp drop at rank {cut + 1}"
        if self.max_k is not None and n_kept >= self.max_k:
            return f"{self.max_k} are kept already (max_k)"
        return ""

    def _why_kept(self, scores: Sequence[float], rank: int) -> str:
        """Why this rank is kept."""
        if self.floor is not None and scores[rank] < self.floor:
            return (
                f"{scores[rank]:.4g} is under the floor {self.floor:.4g}, but among the best {self.min_keep}"
            )
        if rank < self.min_k:
            return f"among the first {self.min_k} (min_k)"
        score, before = scores[rank], scores[rank - 1]
        if score > self.ratio * before:
            return f"{score:.4g} is above {self.ratio:.4g} × {before:.4g}"
        return f"the drop from {before:.4g} to {score:.4g} is smaller than {self.min_gap:.4g} (min_gap)"

    def _tokens(self, candidate: Candidate) -> tuple[int, str]:
        """Size of a candidate in tokens, and "about " where it is an estimate."""
        if candidate.n_tokens is not None:
            return candidate.n_tokens, ""
        if self.count_tokens is not None:
            return self.count_tokens(candidate.text), ""
        return estimate_tokens(candidate.text), "about "
