"""Scores on a ratio scale, where half the score means half as relevant."""

import math
from collections.abc import Sequence

from precise_rag.errors import ScoreScaleError
from precise_rag.types import Candidate


def ratio_scores(candidates: Sequence[Candidate], *, assume_ratio: bool = False) -> list[float]:
    """Convert candidates' scores to a non-negative ratio scale.

    Probabilities and BM25 scores are returned unchanged; logits become probabilities. Cosine and rank
    scores have no ratios.

    candidates: all with the same score_scale.
    assume_ratio: whether to return logits, cosine and rank scores as they are. Logits may then be
        negative, which is a sharp drop after a positive one.
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
    if scale == "logit":
        if assume_ratio:
            return scores
        return [math.exp(min(s, 0.0)) / (1.0 + math.exp(-abs(s))) for s in scores]  # without an overflow
    if scale in ("cosine", "rank") and not assume_ratio:
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
