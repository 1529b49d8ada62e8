import json

import pytest

from precise_rag.candidate_filters.relevance_scoring import Relevance, parse_score, parse_scores


def test_contradictory_and_impossible_scores_are_left_out() -> None:
    good = {"id": "a", "base": 0.5, "reflection": "0.25", "critic": 0}
    other = {**good, "critic": 1}
    assert parse_scores(json.dumps([good]), ["a", "b"]) == {"a": Relevance(0.5, 0.25, 0.0)}
    assert parse_scores(json.dumps([good, other]), ["a"]) == {}
    for bad in (True, None, "high", 1.5, -0.1, 85, [0.5]):
        assert parse_scores(json.dumps([{**good, "base": bad}]), ["a"]) == {}
    assert parse_scores('[{"id": "a", "base": NaN, "reflection": 0, "critic": 0}]', ["a"]) == {}
    assert parse_scores(json.dumps([{**good, "id": 1}]), ["a", "1"]) == {}
    assert parse_scores('{"a":' * 5000, ["a"]) == {}


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 0.7}', 0.7),
        ('Well: {"score": "0.7"}.', 0.7),
        (" 0.7\n", 0.7),
        ("0.7 out of 1", None),
        ('{"score": 0.7} or {"score": 0.2}', None),
        ('{"score": 7}', None),
        ("no", None),
    ],
)
def test_a_single_score_is_read_if_it_is_certain(reply: str, score: float | None) -> None:
    assert parse_score(reply) == score
