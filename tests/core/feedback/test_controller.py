from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.answer import Round
from precise_rag.errors import InputError
from precise_rag.feedback import FeedbackController
from precise_rag.types import Candidate, Judgement, Selection


def selection(*starts):
    candidates = (Candidate("d", n, n + 1, "x", 0.5, "probability") for n in starts)
    return Selection.keep_all(candidates)


def rounds(*turns):
    """Rounds from (min_k, score, adjustment)."""
    return [
        Round(min_k, selection(*range(min_k)), f"draft {n}", Judgement(score, adjustment, "parsed"))
        for n, (min_k, score, adjustment) in enumerate(turns, start=1)
    ]


@pytest.mark.parametrize(
    ("turns", "min_k", "reason"),
    [
        ([(7, 9, 1)], None, "accepted with 9 of 10"),
        ([(7, 10, -1)], None, "accepted with 10 of 10"),
        ([(7, 8, 1)], 8, "more context: min_k 8"),
        ([(7, 8, -1)], 6, "less context: min_k 6"),
        ([(7, 8, 0)], None, "the judge asks for the same context"),
        ([(7, 5, 1), (8, 6, 1)], 9, "more context: min_k 9"),
        ([(7, 5, 1), (8, 6, -1)], None, "the adjustments oscillate: min_k 7 was tried before"),
        ([(7, 5, 1), (8, 6, 1), (9, 6, 1)], None, "round 3 was the last"),
        ([(7, 5, 1), (8, 6, 1), (9, 9, 1)], None, "accepted with 9 of 10"),
        ([(1, 3, -1)], None, "there cannot be less context than one chunk"),
    ],
)
def test_each_step_has_its_reason(turns, min_k, reason):
    assert FeedbackController().next_step(rounds(*turns)) == (min_k, reason)


@pytest.mark.parametrize(
    ("judgement", "reason"),
    [
        (None, "not judged"),
        (Judgement(None, 0, "unparsed"), "the judgement could not be read"),
        (Judgement(None, 0, "failed"), "the judge failed"),
    ],
)
def test_without_a_score_it_stops(judgement, reason):
    turn = Round(7, selection(1), "draft", judgement)
    assert FeedbackController().next_step([turn]) == (None, reason)


def test_the_thresholds_are_settings():
    controller = FeedbackController(accept=6, max_rounds=1)
    assert controller.next_step(rounds((7, 6, 1))).reason == "accepted with 6 of 10"
    assert controller.next_step(rounds((7, 5, 1))).reason == "round 1 was the last"
    for name, value, rule in (
        ("min_k", 0, "at least 1"),
        ("reach", 0, "at least 1"),
        ("max_rounds", -1, "at least 0"),
        ("accept", 11, "from 1 to 10"),
    ):
        with pytest.raises(InputError, match=f"{name} must be {rule}, got {value}"):
            FeedbackController(**{name: value})


def test_the_best_draft_is_the_answer_and_the_earliest_of_equals():
    controller = FeedbackController()
    assert controller.best(rounds((7, 5, 1), (8, 8, 1), (9, 6, 1))).text == "draft 2"
    assert controller.best(rounds((7, 6, 1), (8, 6, 1))).text == "draft 1"
    unscored = [Round(7, selection(1), "a", None), Round(8, selection(1), "b", Judgement(None, 0, "failed"))]
    assert controller.best(unscored).text == "b"
    assert controller.best([*rounds((7, 2, 1)), *unscored]).text == "draft 1"


def test_a_selection_is_new_if_no_round_had_it():
    controller = FeedbackController()
    seen = rounds((2, 5, 1), (3, 5, 1))
    assert not controller.is_new(selection(0, 1), seen)
    assert controller.is_new(selection(1, 0), seen)
    assert controller.is_new(selection(0), seen)


@given(
    st.lists(st.tuples(st.integers(1, 10), st.sampled_from([-1, 0, 1])), min_size=10),
    st.integers(1, 12),
    st.integers(1, 9),
)
def test_the_loop_ends_in_time_whatever_the_judge_replies(judgements, min_k, max_rounds):
    controller = FeedbackController(min_k=min_k, max_rounds=max_rounds)
    done: list[Round] = []
    step = min_k
    while step is not None:
        score, adjustment = judgements[len(done)]
        done.append(Round(step, selection(*range(step)), "", Judgement(score, adjustment, "parsed")))
        step = controller.next_step(done).min_k
    tried = [turn.min_k for turn in done]
    assert len(done) <= max_rounds
    assert len(set(tried)) == len(tried)
    assert all(abs(a - b) == 1 for a, b in pairwise(tried))
    assert all(turn.judgement.score < 9 for turn in done[:-1])
    assert min(tried) >= 1


@pytest.mark.parametrize(
    ("reach", "tried", "min_k", "steps"),
    [
        (1, [], 7, [7]),
        (4, [], 7, [7]),
        (1, [(7, 5, 1)], 8, [8]),
        (3, [(7, 5, 1)], 8, [8, 9, 10]),
        (3, [(7, 5, -1)], 6, [6, 5, 4]),
        (9, [(3, 5, -1)], 2, [2, 1]),
    ],
)
def test_reach_limits_the_steps_of_one_judgement(reach, tried, min_k, steps):
    assert list(FeedbackController(reach=reach).steps_from(min_k, rounds(*tried))) == steps
