import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.feedback import parse_judgement


@pytest.mark.parametrize(
    ("text", "score", "adjustment"),
    [
        ('{"reason": "fine", "score": 9, "adjustment": 0}', 9, 0),
        ("Evaluation Score: 8\nContext Adjustment: -1", 8, -1),
        ("**Evaluation Score:** 10\n**Context Adjustment:** 1", 10, 1),
        ("Evaluation Score: [7].\nContext Adjustment: [−1].", 7, -1),
        ("Evaluation Score: 8/10\nContext Adjustment: less context (-1)", 8, -1),
        ("Evaluation score = 6\nContext adjustment: more context", 6, 1),
        ('```json\n{"Evaluation Score": "7/10", "Context Adjustment": "+1"}\n```', 7, 1),
        ('Let me think. {"a": 1} Then: {"score": 4.9, "adjustment": -1}. Done.', 4, -1),
        ('{"score": 3, "adjustment": 1} on reflection {"score": 6, "adjustment": -1}', 6, -1),
        ('{"result": {"score": 5, "adjustment": 1}}', 5, 1),
        (
            "Evaluation Score: [1-10].\nEvaluation Score: 8\nContext Adjustment: [1, -1].\nAdjustment: 1",
            8,
            1,
        ),
        ("The score is 8.9 and the adjustment is none.", 8, 0),
        ("Score: 9", 9, 0),
        ("Score: 6, adjustment: -1, since half of it is noise.", 6, -1),
        ("score 7 of 10; I would keep the context", 7, 0),
        ('{"score": 8, "adjustment": null}', 8, 0),
        ('{"score": 8, "adjustment": 3}', 8, 1),
        ('{"score": 6, "adjustment": "less"}', 6, -1),
        ('{"score": [8]}', 8, 0),
        ("Score: 1 - 10. Score: 7", 7, 0),
    ],
)
def test_a_judgement_is_read(text, score, adjustment):
    judgement = parse_judgement(text)
    assert (judgement.score, judgement.adjustment, judgement.status, judgement.raw) == (
        score,
        adjustment,
        "parsed",
        text,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I like it.",
        "Evaluation Score: [1-10]. Context Adjustment: [1, -1].",
        '{"score": 0, "adjustment": 1}',
        '{"score": 11, "adjustment": 1}',
        '{"score": true, "adjustment": 1}',
        '{"score": NaN, "adjustment": 1}',
        '{"score": "high"}',
        "{",
        "Evaluation Score: 85",
        "The year is 2024.",
        "Score: 8.5-9",
    ],
)
def test_what_holds_no_score_from_1_to_10_is_unparsed(text):
    judgement = parse_judgement(text)
    assert (judgement.score, judgement.adjustment, judgement.status) == (None, 0, "unparsed")


@given(st.text())
def test_any_text_is_parsed_or_not_but_never_an_error(text):
    judgement = parse_judgement(text)
    assert (judgement.status == "parsed") == (judgement.score is not None)
    assert judgement.score is None or 1 <= judgement.score <= 10


@pytest.mark.parametrize(
    "text",
    [
        "score " + "0" * 200_000 + "-1",
        "score " + "1" * 50_000 + " " * 50_000 + "-1",
        "adjustment " + "1" * 50_000 + " " * 50_000 + ", 1",
        "score is " * 30_000,
        "adjustment: " * 30_000,
        '{"a":' * 50_000,
        '{"score": 1' + "0" * 5_000 + "}",
        '{"score": 1' + "0" * 400 + ', "adjustment": -1' + "0" * 9_000 + "}",
        '{"score": "' + "9" * 200_000 + '"}',
    ],
    ids=range(9),
)
def test_long_replies_are_read_in_linear_time(text: str) -> None:
    assert parse_judgement(text).status == "unparsed"
