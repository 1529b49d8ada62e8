from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.answer import Round
from precise_rag.feedback import FeedbackController, parse_judgement
from precise_rag.types import Candidate, Judgement, Selection
from support.documents import read_cases


def selection(*starts):
    candidates = (Candidate("d", n, n + 1, "x", 0.5, "probability") for n in starts)
    return Selection.keep_all(candidates)


def rounds(*turns):
    """Rounds from (step, score, adjustment)."""
    return [
        Round(step, selection(*range(7 + step)), f"draft {n}", Judgement(score, adjustment, "parsed"))
        for n, (step, score, adjustment) in enumerate(turns, start=1)
    ]


def test_the_best_draft_is_the_answer_by_the_settings():
    controller = FeedbackController(accept=6, max_rounds=1)
    assert controller.next_step(rounds((0, 6, 1))).reason == "accepted with 6 of 10"
    assert controller.next_step(rounds((0, 5, 1))).reason == "round 1 was the last"
    controller = FeedbackController()
    assert controller.next_step(rounds((0, 8, -1))) == (-1, "less context: step -1")
    assert controller.best(rounds((0, 5, 1), (1, 8, 1), (2, 6, 1))).text == "draft 2"
    assert controller.best(rounds((0, 6, 1), (1, 6, 0), (-1, 6, 0))).text == "draft 2"
    unscored = [Round(0, selection(1), "a", None), Round(1, selection(1), "b", Judgement(None, 0, "failed"))]
    assert [controller.next_step([turn]) for turn in unscored] == [
        (None, "not judged"),
        (None, "the judge failed"),
    ]
    assert controller.best(unscored).text == "b"
    assert controller.best([*rounds((0, 2, 1)), *unscored]).text == "draft 1"


@given(st.lists(st.tuples(st.integers(1, 10), st.sampled_from([-1, 0, 1])), min_size=10), st.integers(1, 9))
def test_the_loop_ends_in_time_whatever_the_judge_replies(judgements, max_rounds):
    controller = FeedbackController(max_rounds=max_rounds)
    done: list[Round] = []
    step: int | None = 0
    while step is not None:
        score, adjustment = judgements[len(done)]
        done.append(Round(step, selection(*range(12 + step)), "", Judgement(score, adjustment, "parsed")))
        step = controller.next_step(done).step
    tried = [turn.step for turn in done]
    assert len(done) <= max_rounds
    assert len(set(tried)) == len(tried)
    assert all(abs(a - b) == 1 for a, b in pairwise(tried))
    assert all(turn.judgement.score < 9 for turn in done[:-1])
    assert tried[0] == 0


@pytest.mark.parametrize(("text", "score", "adjustment"), read_cases("judgements.json", "read"))
def test_a_judgement_is_read(text, score, adjustment):
    assert parse_judgement(text) == Judgement(score, adjustment, "parsed", text)


@pytest.mark.parametrize("text", read_cases("judgements.json", "unparsed"))
def test_what_holds_no_score_from_1_to_10_is_unparsed(text):
    assert parse_judgement(text) == Judgement(None, 0, "unparsed", text)


@pytest.mark.parametrize("parts", read_cases("judgements.json", "long replies"))
def test_long_replies_are_read_in_linear_time(parts: list[tuple[str, int]]) -> None:
    assert parse_judgement("".join(part * times for part, times in parts)).status == "unparsed"
