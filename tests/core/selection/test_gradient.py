import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.errors import ScoreScaleError
from precise_rag.selection import GradientSelector, ratio_scores
from precise_rag.types import Candidate, ScoreScale
from support.documents import read_cases

SAGE_FIG_8 = [13.79, 13.58, 11.91, 11.55, 10.94, 7.815, 7.665, 5.490, 4.416, 1.304, 0.800, 0.255, 0.198]
SAGE_FIG_9 = [5.080, 3.854, 3.016, 1.734, 1.560, 1.146, 0.842, 0.823, 0.685]


def candidates(scores: list[float], scale: ScoreScale = "bm25", n_tokens: int | None = 10) -> list[Candidate]:
    return [
        Candidate("doc", 100 * i, 100 * i + 40, "x" * 40, score, scale, n_tokens=n_tokens)
        for i, score in enumerate(scores)
    ]


def test_the_figures_of_sage_are_cut_as_in_the_paper() -> None:
    selection = GradientSelector(min_k=7, ratio=0.3).select(candidates(SAGE_FIG_8))
    assert [c.score for c in selection.kept] == SAGE_FIG_8[:9]
    assert selection.reasons[6] == "among the first 7 (min_k)"
    assert selection.reasons[8] == "4.416 is above 0.3 × 5.49"
    assert selection.reasons[9] == "sharp drop: 1.304 is not above 0.3 × 4.416"
    assert set(selection.reasons[10:]) == {"after the sharp drop at rank 10"}
    assert [d.rank for d in selection.decisions] == list(range(1, 14))
    for min_k in (1, 7):
        whole = GradientSelector(min_k=min_k, ratio=0.3).select(candidates(SAGE_FIG_9))
        assert [c.score for c in whole.kept] == SAGE_FIG_9


@pytest.mark.parametrize(("settings", "scores", "n_kept", "reason"), read_cases("selection.json", "gradient"))
def test_limits_and_what_goes_before_them(
    settings: dict[str, Any], scores: list[float], n_kept: int, reason: str
) -> None:
    selection = GradientSelector(**settings).select(candidates(scores, "probability"))
    assert [d.kept for d in selection.decisions] == [True] * n_kept + [False] * (len(scores) - n_kept)
    assert any(reason in one for one in selection.reasons)


def test_the_floor_of_logits_is_a_probability_and_a_smaller_candidate_may_fit() -> None:
    logits = candidates([0.0, math.log(3.0), -800.0, 800.0], "logit")
    assert ratio_scores(logits) == pytest.approx([0.5, 0.75, 0.0, 1.0])
    selection = GradientSelector(min_k=1, min_score=0.6).select(logits)
    assert [c.score for c in selection.kept] == [800.0, math.log(3.0)]
    assert {c.score_scale for c in selection.kept} == {"logit"}
    sized = [
        Candidate("doc", i, i + 1, "x", 1.0 - i / 10, "probability", n_tokens=n)
        for i, n in enumerate([60, 50, 40])
    ]
    assert [d.kept for d in GradientSelector(max_tokens=100).select(sized).decisions] == [True, False, True]
    unsized = candidates([3.0, 2.0], n_tokens=None)
    estimated = GradientSelector(max_tokens=10).select(unsized)
    assert estimated.reasons[1] == "7 tokens do not fit in the 3 left of 10"
    counted = GradientSelector(max_tokens=50, count_tokens=len).select(unsized)
    assert counted.reasons[1] == "40 tokens do not fit in the 10 left of 50"


SCORES = st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.1, 0.5]), max_size=30)
SELECTORS = st.builds(
    GradientSelector,
    min_k=st.integers(1, 10),
    ratio=st.floats(0.0, 1.0),
    max_k=st.none() | st.integers(1, 10),
    max_tokens=st.none() | st.integers(1, 200),
    min_score=st.none() | st.floats(0.0, 1.0),
    share_of_best=st.none() | st.floats(0.0, 1.0),
    min_keep=st.integers(0, 3),
)


@given(SCORES, SELECTORS)
def test_limits_always_hold_and_nothing_is_lost(scores: list[float], selector: GradientSelector) -> None:
    scored = candidates(scores, "probability")
    selection = selector.select(scored)
    assert selector.select(scored[::-1]) == selection, "in any order"
    kept = selection.kept
    assert sorted(d.candidate.score for d in selection.decisions) == sorted(scores)
    assert all(d.reason for d in selection.decisions)
    assert selector.max_k is None or len(kept) <= selector.max_k
    assert selector.max_tokens is None or sum(c.n_tokens or 0 for c in kept) <= selector.max_tokens
    lowest = max(selector.min_score or 0.0, (selector.share_of_best or 0.0) * max(scores, default=0.0))
    assert all(d.candidate.score >= lowest for d in selection.decisions[selector.min_keep :] if d.kept)
    assert [c.score for c in kept] == sorted((c.score for c in kept), reverse=True)
    if selector.max_k is selector.max_tokens is selector.min_score is selector.share_of_best is None:
        assert len(kept) >= min(selector.min_k, len(scores))


@pytest.mark.parametrize(("step", "n_kept"), [(-2, 2), (-1, 3), (0, 4), (1, 5), (2, 6), (9, 6)])
def test_each_step_of_feedback_keeps_one_candidate_more_or_fewer(step: int, n_kept: int) -> None:
    ranked = candidates([0.9, 0.8, 0.7, 0.6, 0.1, 0.01])
    selector = GradientSelector(min_k=3, min_score=0.05)
    assert len(selector.select(ranked).kept) == 4  # 0.1 is a sharp drop
    assert len(selector.select(ranked, step=step).kept) == n_kept
    assert len(replace(selector, max_k=2).select(ranked, step=step).kept) <= 2


def test_as_in_the_paper_a_step_may_move_min_k_alone():
    """Section VI-A: where the gradient keeps more than min_k, one more or fewer changes nothing."""
    smooth = [Candidate("d", n, n + 1, "x", 0.9 - 0.01 * n, "probability") for n in range(12)]
    steep = [Candidate("d", n, n + 1, "x", 0.9 * 0.1**n, "probability") for n in range(12)]
    selector = GradientSelector(min_k=3, moves="min_k")
    assert [len(selector.select(smooth, step=step).kept) for step in (-1, 0, 1)] == [12, 12, 12]
    assert [len(selector.select(steep, step=step).kept) for step in (-5, -1, 0, 1)] == [1, 2, 3, 4]
    kept = GradientSelector(min_k=3)
    assert [len(kept.select(smooth, step=step).kept) for step in (-1, 0)] == [11, 12]


@pytest.mark.parametrize("scale", ["cosine", "rank"])
def test_cosine_and_rank_scores_need_assume_ratio(scale: ScoreScale) -> None:
    message = rf"got score_scale '{scale}'; rerank first .*assume_ratio=True"
    with pytest.raises(ScoreScaleError, match=message):
        ratio_scores(candidates([0.8, 0.1], scale))
    assert ratio_scores(candidates([0.8, -0.1], scale), assume_ratio=True) == [0.8, -0.1]


@pytest.mark.parametrize(("given", "message"), read_cases("selection.json", "refused"))
def test_values_outside_a_scale_and_mixed_scales_are_refused(given: dict[ScoreScale, Any], message: str):
    mixed = [one for scale, scores in given.items() for one in candidates(scores, scale)]
    with pytest.raises(ScoreScaleError, match=message):
        ratio_scores(mixed, assume_ratio=True)
