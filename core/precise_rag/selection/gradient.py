"""Gradient selection: keep the best candidates up to the first sharp drop of the score.

Source: SAGE, section V. A drop is a ratio of neighbouring scores, so the scores must be on a scale
that has ratios (see `ratio_scores`), where half the score means half as relevant.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from precise_rag.checks import check_choice, check_number
from precise_rag.errors import ScoreScaleError
from precise_rag.tokens import candidate_tokens
from precise_rag.types import UNSCORED, Candidate, Selection, Verdict, best_first


def ratio_scores(candidates: Sequence[Candidate], *, assume_ratio: bool = False) -> list[float]:
    """Convert candidates' scores to a non-negative ratio scale.

    Probabilities and BM25 scores stay; logits become probabilities; cosine and rank scores have no ratios.

    candidates: all with the same score_scale.
    assume_ratio: whether to return logits, cosine and rank scores as they are. They may be negative, which
        is a sharp drop after a positive one.
    Returns the scores in the order given.
    Raises ScoreScaleError for cosine and rank scores, mixed scales, and values outside their scale.
    Source of raw logits: SAGE, Algorithm 2 and Figs. 8 and 9.
    """
    scales = sorted({c.score_scale for c in candidates})
    if len(scales) > 1:
        raise ScoreScaleError(
            f"all candidates must have the same score_scale, got {', '.join(scales)}; rerank them together"
        )
    scores = [c.score for c in candidates]
    if not scores:
        return scores
    scale = scales[0]
    if assume_ratio and scale in ("logit", "cosine", "rank"):
        return scores
    if scale == "logit":
        return [math.exp(min(s, 0.0)) / (1.0 + math.exp(-abs(s))) for s in scores]  # without an overflow
    if scale in ("cosine", "rank"):
        raise ScoreScaleError(
            f"selection needs scores on a ratio scale, got score_scale {scale!r}; "
            "rerank first (the rerankers in precise_rag.rerank return probabilities), "
            "or pass assume_ratio=True if half the score means half as relevant"
        )
    low, high = min(scores), max(scores)
    if scale == "probability" and not (low >= 0.0 and high <= 1.0):
        raise ScoreScaleError(
            f"probability scores must be in [0, 1], got {low:.4g} to {high:.4g}; "
            "for raw model outputs, set score_scale='logit'"
        )
    if low < 0.0 or math.isinf(high):
        raise ScoreScaleError(
            f"{scale} scores must be finite and non-negative for selection, "
            f"got {low:.4g} to {high:.4g}; rerank first"
        )
    return scores


def gradient_cut(scores: Sequence[float], *, min_k: int, ratio: float) -> int:
    """Count the scores before the first sharp drop.

    A drop is sharp if the score is at most `ratio` times its predecessor.

    scores: non-negative, in descending order.
    min_k: number of scores that are always counted.
    ratio: in [0, 1].
    Returns the count.
    Source: SAGE, section V-B. Differs: Algorithm 2 compares with one fixed score and `1/g`; the text
    and Figs. 8 and 9 compare with the predecessor and a ratio of 0.3, as here.

    >>> gradient_cut([0.9, 0.8, 0.1, 0.09], min_k=1, ratio=0.3)
    2
    """
    for rank in range(min_k, len(scores)):
        if scores[rank] <= ratio * scores[rank - 1]:
            return rank
    return len(scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientSelector:
    """Selector that keeps the best candidates up to the first sharp drop of the score.

    min_k: number of candidates to keep before looking for a drop.
    ratio: a score of at most `ratio` times its predecessor is a sharp drop; in [0, 1].
    max_k: most candidates to keep; default no limit.
    max_tokens, count_tokens: as for `ProbabilitySelector`.
    min_score: candidates with lower scores are dropped; for logits, a probability; default none.
    share_of_best: candidates under this share of the best score are dropped; in [0, 1]; default none.
    min_keep: number of the best candidates to keep even over a sharp drop, or under `min_score` or
    `share_of_best`.
    assume_ratio: whether to take logits, cosine and rank scores as they are; default: logits become
    probabilities, cosine and rank scores are refused. SAGE takes raw logits.
    moves: what a step of feedback changes: the number "kept" (default), or "min_k" alone, as in SAGE.
    Raises InputError if a setting is out of range.

    Precedence, strongest first: max_k and max_tokens, min_keep, min_score and share_of_best, min_k. So
    fewer than min_k candidates may be kept, or none.
    """

    min_k: int = 7
    ratio: float = 0.3
    max_k: int | None = None
    max_tokens: int | None = None
    min_score: float | None = None
    share_of_best: float | None = None
    min_keep: int = 0
    count_tokens: Callable[[str], int] | None = None
    assume_ratio: bool = False
    moves: Literal["kept", "min_k"] = "kept"

    def __post_init__(self) -> None:
        check_number("min_k", self.min_k, least=1, whole=True)
        check_number("ratio", self.ratio, least=0, most=1)
        check_number("min_score", self.min_score, none="no such limit")
        check_number("share_of_best", self.share_of_best, least=0, most=1, none="no such limit")
        check_number("min_keep", self.min_keep, least=0, whole=True)
        check_choice("moves", self.moves, ("kept", "min_k"))
        for name in ("max_k", "max_tokens"):
            check_number(name, getattr(self, name), least=1, whole=True, none="no limit")

    def select(self, candidates: Iterable[Candidate], *, query: str = "", step: int = 0) -> Selection:
        """Decide which candidates to keep.

        candidates: in any order.
        query: not used.
        step: of feedback; so many candidates more are kept than at 0, or fewer if it is negative. With
            moves="min_k" it is added to `min_k`.
        Returns one decision per candidate, best first; max_k and max_tokens hold at every step.
        Raises ScoreScaleError if the scores have no ratios (see `ratio_scores`).
        Source: SAGE, section VI-A. Differs: the paper changes min_k, which has no effect if the gradient
        keeps more than min_k, or `min_score` fewer; here the number kept changes, unless `moves` is "min_k".
        """
        candidates = best_first(candidates)
        if self.moves == "min_k":
            return replace(self, min_k=max(1, self.min_k + step))._select(candidates)
        selection = self._select(candidates)
        n_kept = max(1, len(selection.kept) + step)
        if step > 0:
            return replace(self, min_k=max(self.min_k + step, n_kept), min_keep=n_kept)._select(candidates)
        return replace(self, max_k=n_kept)._select(candidates) if step < 0 else selection

    def _select(self, given: Sequence[Candidate]) -> Selection:
        """Select at step 0. given: best first."""
        ranked = [candidate for candidate in given if UNSCORED not in candidate.scores]
        scores = ratio_scores(ranked, assume_ratio=self.assume_ratio)
        cut = gradient_cut(scores, min_k=max(self.min_k, self.min_keep), ratio=self.ratio)
        verdicts: list[Verdict] = []
        n_kept, left = 0, self.max_tokens or 0
        for rank, candidate in enumerate(ranked):
            reason = self._against(scores, rank, cut, n_kept)
            if not reason and self.max_tokens is not None:
                size = candidate_tokens(candidate, self.count_tokens)
                if size > left:
                    reason = f"{size} tokens do not fit in the {left} left of {self.max_tokens}"
                left -= 0 if reason else size
            n_kept += not reason
            verdicts.append((candidate, not reason, reason or self._why_kept(scores, rank)))
        verdicts += [(candidate, False, "it has no usable score") for candidate in given[len(ranked) :]]
        return Selection.of(verdicts)

    def _against(self, scores: Sequence[float], rank: int, cut: int, n_kept: int) -> str:
        """Return why this rank is dropped, before its tokens are counted; empty if it is not."""
        score = scores[rank]
        if rank >= self.min_keep and (limit := self._limit_above(scores, rank)):
            return f"{score:.4g} is under {limit}"
        if rank == cut:
            return f"sharp drop: {score:.4g} is not above {self.ratio:.4g} × {scores[rank - 1]:.4g}"
        if rank > cut:
            return f"after the sharp drop at rank {cut + 1}"
        if self.max_k is not None and n_kept >= self.max_k:
            return f"{self.max_k} are kept already (max_k)"
        return ""

    def _limit_above(self, scores: Sequence[float], rank: int) -> str:
        """Return the limit that this rank's score is under; empty if it is under none."""
        score = scores[rank]
        if self.min_score is not None and score < self.min_score:
            return f"min_score {self.min_score:.4g}"
        if self.share_of_best is not None and score < self.share_of_best * scores[0]:
            return f"{self.share_of_best:.4g} of the best, {scores[0]:.4g}"
        return ""

    def _why_kept(self, scores: Sequence[float], rank: int) -> str:
        if limit := self._limit_above(scores, rank):
            return f"{scores[rank]:.4g} is under {limit}, but among the best {self.min_keep}"
        if rank < self.min_k:
            return f"among the first {self.min_k} (min_k)"
        if rank < self.min_keep:
            return f"among the best {self.min_keep} (min_keep)"
        return f"{scores[rank]:.4g} is above {self.ratio:.4g} × {scores[rank - 1]:.4g}"


DEFAULT_SELECTOR = GradientSelector(share_of_best=0.25, min_keep=1)
"""The default of gradient selection: SAGE's gradient, and what is a quarter as probable as the best.

Why a share of the best: calibrated probabilities fall slowly, so the gradient alone keeps almost every
candidate; and where all are improbable, their order still tells them apart, but no fixed limit does.
Measured by `python -m benchmarks.adoption`."""
