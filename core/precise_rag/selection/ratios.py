"""Scores as ratios: which scales have them, and how a logit becomes one."""

import math
from collections.abc import Sequence

from precise_rag.errors import ScoreScaleError
from precise_rag.types import Candidate


def ratio_scores(candidates: Sequence[Candidate], *, assume_ratio: bool = False) -> list[float]:
    """The candidates' scores on a non-negative ratio scale, in the order given.

    Probabilities and BM25 pass as they are; logits go through a sigmoid, once. Cosines and ranks
    have no zero to take ratios from and are refused, unless `assume_ratio` says that the caller
    knows better. Raises ScoreScaleError for those, for mixed scales and for values off their scale.
    """
    scales = sorted({c.score_scale for c in candidates})
    if len(scales) > 1:
        raise ScoreScaleError(
            f"candidates carry {len(scales)} score scales ({', '.join(scales)}); "
            "rerank them together, so that all scores mean the same"
        )
    scores = [c.score for c in candidates]
    if not scores:
        return scores
    scale = scales[0]
    if scale == "logit":
        return [_sigmoid(score) for score in scores]
    if scale in ("cosine", "rank") and not assume_ratio:
        raise ScoreScaleError(
            f"gradient selection needs a ratio scale, but these scores are on the {scale!r} scale; "
            "rerank first (precise_rag.rerank gives probabilities), "
            "or pass assume_ratio=True if half the score does mean half as relevant here"
        )
    low, high = min(scores), max(scores)
    if scale == "probability" and not (low >= 0.0 and high <= 1.0):
        raise ScoreScaleError(
            f"probabilities must lie in [0, 1], got {low:.4g} to {high:.4g}; "
            "a raw model output has score_scale='logit'"
        )
    if low < 0.0 or math.isinf(high):
        raise ScoreScaleError(
            f"{scale} scores from {low:.4g} to {high:.4g} have no ratios; "
            "they must be finite and non-negative"
        )
    return scores


def _sigmoid(logit: float) -> float:
    """Logistic function that does not overflow."""
    if logit >= 0.0:
        return 1.0 / (1.0 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1.0 + odds)
