"""Rankings: hand-worked values, and passages instead of a pipeline's own units."""

import math

import pytest

from precise_rag.evaluation import Evidence, Positions, RankedPassages, ranking_scores
from precise_rag.types import Document

pytest.importorskip("ir_measures")

POSITIONS = Positions([Document("a", "one two\n\nthree\n \nfour"), Document("b", "five")], tokenizer="words")


def test_scores_by_hand() -> None:
    relevant = {"q1": ["x", "y"], "q2": ["z"], "q3": ["w"]}
    ranked = {"q1": ["n", "x", "m", "y"], "q2": ["n", "m", "o", "z"]}
    scores = ranking_scores(relevant, ranked, cutoffs=(1, 3, 10))
    assert scores["Hits@1"].tolist() == pytest.approx([0, 0, 0])
    assert scores["Hits@3"].tolist() == pytest.approx([1, 0, 0])
    assert scores["Hits@10"].tolist() == pytest.approx([1, 1, 0])
    assert scores["MRR@3"].tolist() == pytest.approx([0.5, 0, 0])
    assert scores["MRR@10"].tolist() == pytest.approx([0.5, 0.25, 0])
    ideal = 1 + 1 / math.log2(3)
    assert scores["nDCG@10"][0] == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert scores["nDCG@3"][1] == pytest.approx(0)


def test_order_of_equal_items_is_the_order_given() -> None:
    ranked = {"q": [f"i{n:03}" for n in range(50)]}
    assert ranking_scores({"q": ["i002"]}, ranked, cutoffs=(3,))["MRR@3"].tolist() == pytest.approx([1 / 3])


def test_spans_become_the_passages_that_they_touch() -> None:
    passages = RankedPassages(POSITIONS)
    third, first_two = Evidence("a", 17, 21), Evidence("a", 4, 12)
    assert passages.ids([third, first_two, Evidence("b", 0, 4)]) == ["a:17-21", "a:0-9", "a:9-17", "b:0-4"]
    assert passages.ids([Evidence("a", 7, 9)]) == [], "white space touches no passage"
    assert RankedPassages(POSITIONS, "document").ids([third, Evidence("b", 1, 2)]) == ["a:0-21", "b:0-4"]


def test_nothing_ranked() -> None:
    assert ranking_scores({"q": ["x"]}, {}, cutoffs=(1,))["nDCG@1"].tolist() == pytest.approx([0])
