import math

import pytest

from precise_rag.errors import ScoreScaleError
from precise_rag.selection import ratio_scores
from precise_rag.types import Candidate, ScoreScale


def candidates(scores: list[float], scale: ScoreScale) -> list[Candidate]:
    return [Candidate("doc", 9 * i, 9 * i + 5, "text", score, scale) for i, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("scale", "scores", "ratios"),
    [
        ("probability", [0.1, 0.9], [0.1, 0.9]),
        ("bm25", [0.1, 9.0], [0.1, 9.0]),
        ("logit", [0.0, math.log(3.0), -800.0, 800.0], [0.5, 0.75, 0.0, 1.0]),
        ("logit", [], []),
    ],
)
def test_logits_become_probabilities_and_other_ratios_are_unchanged(
    scale: ScoreScale, scores: list[float], ratios: list[float]
) -> None:
    assert ratio_scores(candidates(scores, scale)) == pytest.approx(ratios)


@pytest.mark.parametrize("scale", ["cosine", "rank"])
def test_cosine_and_rank_scores_need_assume_ratio(scale: ScoreScale) -> None:
    message = rf"got score_scale '{scale}'; rerank first .*assume_ratio=True"
    with pytest.raises(ScoreScaleError, match=message):
        ratio_scores(candidates([0.8, 0.1], scale))
    assert ratio_scores(candidates([0.8, 0.1], scale), assume_ratio=True) == [0.8, 0.1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (candidates([1.2, 0.3], "probability"), r"in \[0, 1\], got 0.3 to 1.2"),
        (candidates([0.3, -0.1], "probability"), r"in \[0, 1\], got -0.1 to 0.3"),
        (candidates([2.0, -1.0], "bm25"), "finite and non-negative .* got -1 to 2"),
        (candidates([math.inf, 1.0], "bm25"), "finite and non-negative .* got 1 to inf"),
        (candidates([0.2, -0.1], "cosine"), "finite and non-negative"),
        ([*candidates([0.5], "probability"), *candidates([3.0], "bm25")], "scale, got bm25, probability"),
    ],
)
def test_values_outside_their_scale_and_mixed_scales_are_refused(
    given: list[Candidate], message: str
) -> None:
    with pytest.raises(ScoreScaleError, match=message):
        ratio_scores(given, assume_ratio=True)
