import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.candidate_filters import DynamicThreshold

PAPER = DynamicThreshold(min_score=0.0, ceiling=1.0)
TIGHT = "mean of 4 scores plus their standard deviation"
BOUNDED = DynamicThreshold(min_score=0.3, ceiling=0.8)


@pytest.mark.parametrize(
    ("rule", "scores", "value", "reason"),
    [
        (PAPER, [0.9, 0.6, 0.0], 0.5, "mean of 3 scores"),
        (PAPER, [0.5, 0.54, 0.58, 0.5], 0.53 + 0.0011**0.5, TIGHT),
        (BOUNDED, [0.1, 0.2], 0.3, "min_score"),
        (BOUNDED, [0.95, 0.9, 0.99], 0.8, "the ceiling"),
        (BOUNDED, [], 0.3, "min_score"),
    ],
)
def test_spread_scores_are_cut_at_their_mean_tight_ones_above_it_and_the_bounds_hold(
    rule: DynamicThreshold, scores: list[float], value: float, reason: str
) -> None:
    assert rule.of(scores) == (pytest.approx(value), reason)


@pytest.mark.parametrize(
    ("rule", "scores", "relevant"),
    [
        (DynamicThreshold(), [0.7] * 3, [True] * 3),
        (DynamicThreshold(), [0.1] * 3, [False] * 3),
        (DynamicThreshold(min_score=0.2, min_keep=2), [0.3, 0.9, 0.1, 0.35], [False, True, False, True]),
        (DynamicThreshold(min_score=0.2, min_keep=2), [0.1, 0.15], [False, False]),
    ],
)
def test_equal_scores_stand_or_fall_together_and_the_best_are_kept_but_nothing_under_the_floor(
    rule: DynamicThreshold, scores: list[float], relevant: list[bool]
) -> None:
    assert rule.relevant(scores, rule.of(scores)) == relevant


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_the_best_is_kept_if_it_reaches_the_floor_and_order_does_not_matter(scores: list[float]) -> None:
    rule = DynamicThreshold()
    kept = rule.relevant(scores, rule.of(scores))
    best = max(scores)
    assert kept[scores.index(best)] == (best >= rule.min_score)
    again = rule.relevant(scores[::-1], rule.of(scores[::-1]))
    assert again[::-1] == kept
