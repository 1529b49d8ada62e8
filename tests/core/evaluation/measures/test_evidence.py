"""Evidence at token budgets: hand-worked values, and an oracle that reads character by character."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.errors import InputError
from precise_rag.evaluation import Evidence, Positions, score_evidence, useful_ratio
from precise_rag.types import Document

TEXT = "aa bb cc dd ee ff gg hh"
POSITIONS = Positions([Document("d", TEXT), Document("e", "xx\n yy")], tokenizer="words")


def span(first: int, last: int, doc_id: str = "d") -> Evidence:
    """Words `first` to `last` of a text whose words are two letters long."""
    return Evidence(doc_id, 3 * first, 3 * last + 2)


def test_recall_precision_and_iou_by_hand() -> None:
    scores = score_evidence(POSITIONS, [span(0, 3), span(4, 5)], [span(3, 4)], budgets=(2, 4, 5, 6, 99))
    np.testing.assert_allclose(scores.recall, [0, 0.5, 1, 1, 1])
    np.testing.assert_allclose(scores.precision, [0, 1 / 4, 2 / 5, 2 / 6, 2 / 6])
    np.testing.assert_allclose(scores.iou, [0, 1 / 5, 2 / 5, 2 / 6, 2 / 6])
    assert scores.tokens.tolist() == [2, 4, 5, 6, 6]


def test_whole_spans_stop_before_the_one_that_does_not_fit() -> None:
    ranked = [span(0, 1), span(2, 5), span(6, 6)]
    scores = score_evidence(POSITIONS, ranked, [span(2, 2)], budgets=(3, 6), last="whole")
    assert scores.recall.tolist() == pytest.approx([0, 1])
    assert scores.tokens.tolist() == [2, 6]


def test_repeated_text_is_paid_for_twice_and_counted_once() -> None:
    scores = score_evidence(POSITIONS, [span(0, 1), span(1, 2)], [span(1, 1)], budgets=(math.inf,))
    assert (scores.recall[0], scores.precision[0], scores.tokens[0]) == pytest.approx((1, 1 / 4, 4))


def test_white_space_and_alternative_evidence_do_not_change_the_result() -> None:
    evidence = [Evidence("d", 2, 6), span(1, 1), Evidence("d", 3, 5)]
    assert score_evidence(POSITIONS, [span(1, 1)], evidence, budgets=(1,)).recall[0] == pytest.approx(1)
    half = score_evidence(POSITIONS, [Evidence("e", 0, 6)], [Evidence("e", 3, 6)], budgets=(1,))
    assert half.recall[0] == pytest.approx(0)


def test_nothing_retrieved_and_bad_spans() -> None:
    assert score_evidence(POSITIONS, [], [span(0, 0)]).recall.tolist() == pytest.approx([0, 0, 0, 0])
    with pytest.raises(InputError, match="evidence is empty"):
        score_evidence(POSITIONS, [span(0, 0)], [Evidence("d", 2, 3)])
    with pytest.raises(InputError, match="not in the collection"):
        score_evidence(POSITIONS, [Evidence("z", 0, 1)], [span(0, 0)])
    with pytest.raises(InputError, match="do not fit"):
        POSITIONS.locate([Evidence("d", 0, 99)])


def test_useful_ratio_counts_sentences_that_hold_evidence() -> None:
    sentences = [span(0, 1), span(2, 3), span(4, 5), span(6, 7)]
    ranked = [span(0, 3), span(4, 7)]
    assert useful_ratio(POSITIONS, ranked, [span(3, 3)], sentences, budget=4) == pytest.approx(1 / 2)
    assert useful_ratio(POSITIONS, ranked, [span(3, 3)], sentences, budget=5) == pytest.approx(1 / 3)
    assert useful_ratio(POSITIONS, [], [span(3, 3)], sentences) == pytest.approx(0)


words = st.lists(st.sampled_from(["a", "bb", "ccc", "dddd"]), min_size=1, max_size=30)


@given(words, st.data())
def test_equal_to_reading_one_token_after_another(tokens: list[str], data: st.DataObject) -> None:
    text = " ".join(tokens)
    token_spans = [match.span() for match in re.finditer(r"\w+", text)]
    ranges = st.tuples(*[st.integers(0, len(tokens) - 1)] * 2).map(sorted)
    ranked = [
        Evidence("d", token_spans[a][0], token_spans[b][1])
        for a, b in data.draw(st.lists(ranges, max_size=6))
    ]
    evidence = [
        Evidence("d", token_spans[a][0], token_spans[b][1])
        for a, b in data.draw(st.lists(ranges, min_size=1, max_size=3))
    ]
    budget = data.draw(st.integers(0, 40))
    sent = [
        offset
        for start, end in [
            token
            for unit in ranked
            for token in token_spans
            if unit.start <= token[0] and token[1] <= unit.end
        ][:budget]
        for offset in range(start, end)
    ]
    wanted = {o for e in evidence for o in range(e.start, e.end) if text[o] != " "}
    hit = len(wanted & set(sent))
    scores = score_evidence(Positions([Document("d", text)], "words"), ranked, evidence, (budget,))
    assert scores.recall[0] == pytest.approx(hit / len(wanted))
    assert scores.precision[0] == pytest.approx(hit / max(1, len(sent)))
    assert scores.iou[0] == pytest.approx(hit / (len(wanted) + len(sent) - hit))
