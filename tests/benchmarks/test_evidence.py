"""Evidence at token budgets: hand-worked values, and an oracle that reads character by character."""

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness.datasets import Evidence
from benchmarks.harness.evidence import Positions, RankedPassages, covered, score_evidence, useful_ratio
from precise_rag.types import Document


def words(text: str) -> Any:
    """Where the words of a text begin."""
    return np.array([match.start() for match in re.finditer(r"\w+", text)], dtype=np.int64)


TEXT = "aa bb cc dd ee ff gg hh"
POSITIONS = Positions([Document("d", TEXT), Document("e", "xx\n yy")], words)


def span(first: int, last: int, doc_id: str = "d") -> Evidence:
    """Words `first` to `last` of a text whose words are two letters long."""
    return Evidence(doc_id, 3 * first, 3 * last + 2)


def test_recall_and_iou_by_hand() -> None:
    scores = score_evidence(POSITIONS, [span(0, 3), span(4, 5)], [span(3, 4)], budgets=(2, 4, 5, 6, 99))
    np.testing.assert_allclose(scores.recall, [0, 0.5, 1, 1, 1])
    np.testing.assert_allclose(scores.iou, [0, 1 / 5, 2 / 5, 2 / 6, 2 / 6])
    assert scores.tokens.tolist() == [2, 4, 5, 6, 6]


def test_repeated_text_is_paid_for_twice_and_counted_once() -> None:
    scores = score_evidence(POSITIONS, [span(0, 1), span(1, 2)], [span(1, 1)], budgets=(math.inf,))
    assert (scores.recall[0], scores.iou[0], scores.tokens[0]) == pytest.approx((1, 1 / 4, 4))


def test_white_space_and_alternative_evidence_do_not_change_the_result() -> None:
    evidence = [Evidence("d", 2, 6), span(1, 1), Evidence("d", 3, 5)]
    assert score_evidence(POSITIONS, [span(1, 1)], evidence, budgets=(1,)).recall[0] == pytest.approx(1)
    half = score_evidence(POSITIONS, [Evidence("e", 0, 6)], [Evidence("e", 3, 6)], budgets=(1,))
    assert half.recall[0] == pytest.approx(0)
    assert score_evidence(POSITIONS, [], [span(0, 0)]).recall.tolist() == pytest.approx([0, 0, 0, 0])
    with pytest.raises(ValueError, match="evidence is empty"):
        score_evidence(POSITIONS, [span(0, 0)], [Evidence("d", 2, 3)])


def test_positions_count_visible_code_points() -> None:
    positions = Positions([Document("d", "😀 😀😀 a"), Document("e", "c")], words)
    assert positions.locate([Evidence("d", 2, 4), Evidence("e", 0, 1)]).tolist() == [[1, 3], [4, 5]]
    assert POSITIONS.count_tokens([span(0, 3), span(2, 2), Evidence("e", 0, 6)]) == 7


def test_useful_ratio_counts_sentences_that_hold_evidence() -> None:
    sentences = POSITIONS.locate([span(0, 1), span(2, 3), span(4, 5), span(6, 7)])
    ranked = [span(0, 3), span(4, 7)]
    assert useful_ratio(POSITIONS, ranked, [span(3, 3)], sentences, budget=4) == pytest.approx(1 / 2)
    assert useful_ratio(POSITIONS, ranked, [span(3, 3)], sentences, budget=5) == pytest.approx(1 / 3)
    assert useful_ratio(POSITIONS, [], [span(3, 3)], sentences) == pytest.approx(0)


def test_covered_counts_each_character_once_and_in_its_document() -> None:
    evidence = (Evidence("d", 0, 10), Evidence("e", 0, 10))
    pieces = [Evidence("d", 0, 6), Evidence("d", 4, 8), Evidence("d", 20, 30), Evidence("f", 0, 10)]
    assert covered(evidence, pieces) == pytest.approx(8 / 20)
    assert covered(evidence, []) == 0


def test_spans_become_the_passages_that_they_touch() -> None:
    documents = [Document("a", "one two\n\nthree\n \nfour"), Document("b", "five")]
    passages = RankedPassages(Positions(documents, words))
    third, first_two = Evidence("a", 17, 21), Evidence("a", 4, 12)
    assert passages.ids([third, first_two, Evidence("b", 0, 4)]) == ["a:17-21", "a:0-9", "a:9-17", "b:0-4"]
    assert passages.ids([Evidence("a", 7, 9)]) == [], "white space touches no passage"


several_words = st.lists(st.sampled_from(["a", "bb", "ccc", "dddd"]), min_size=1, max_size=30)


@given(several_words, st.data())
def test_equal_to_reading_one_token_after_another(tokens: list[str], data: st.DataObject) -> None:
    text = " ".join(tokens)
    token_spans = [match.span() for match in re.finditer(r"\w+", text)]
    ranges = st.tuples(*[st.integers(0, len(tokens) - 1)] * 2).map(sorted)

    def drawn(least: int, most: int) -> list[Evidence]:
        pairs = data.draw(st.lists(ranges, min_size=least, max_size=most))
        return [Evidence("d", token_spans[a][0], token_spans[b][1]) for a, b in pairs]

    ranked, evidence = drawn(0, 6), drawn(1, 3)
    budget = data.draw(st.integers(0, 40))
    read = [
        token for unit in ranked for token in token_spans if unit.start <= token[0] and token[1] <= unit.end
    ][:budget]
    sent = [offset for start, end in read for offset in range(start, end)]
    wanted = {o for e in evidence for o in range(e.start, e.end) if text[o] != " "}
    hit = len(wanted & set(sent))
    positions = Positions([Document("d", text)], words)
    scores = score_evidence(positions, ranked, evidence, (budget,))
    assert scores.recall[0] == pytest.approx(hit / len(wanted))
    assert scores.iou[0] == pytest.approx(hit / (len(wanted) + len(sent) - hit))
    assert scores.tokens[0] == len(read)
