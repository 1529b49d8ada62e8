"""Evidence at token budgets, by hand and against an oracle that reads character by character; intervals."""

import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness.datasets import Evidence
from benchmarks.harness.evidence import Positions, RankedPassages, covered, evidence_recall, useful_ratio
from benchmarks.harness.statistics import compare_over_sets, mean_interval
from precise_rag.types import Document


def words(text: str) -> Any:
    """Where the words of a text begin."""
    return np.array([match.start() for match in re.finditer(r"\w+", text)], dtype=np.int64)


TEXT = "aa bb cc dd ee ff gg hh"
POSITIONS = Positions([Document("d", TEXT), Document("e", "xx\n yy")], words)


def span(first: int, last: int) -> Evidence:
    """Words `first` to `last` of the first text."""
    return Evidence("d", 3 * first, 3 * last + 2)


def test_positions_count_visible_code_points_and_evidence_without_one_is_refused() -> None:
    positions = Positions([Document("d", "😀 😀😀 a"), Document("e", "c")], words)
    assert positions.locate([Evidence("d", 1, 4), Evidence("e", 0, 1)]).tolist() == [[1, 3], [4, 5]]
    assert POSITIONS.count_tokens([span(0, 3), span(2, 2), Evidence("e", 0, 6)]) == 7
    with pytest.raises(ValueError, match="evidence is empty"):
        evidence_recall(POSITIONS, [span(0, 0)], [Evidence("d", 2, 3)])


def test_useful_sentences_hold_evidence_and_each_character_is_covered_once() -> None:
    sentences = POSITIONS.locate([span(0, 1), span(2, 3), span(4, 5), span(6, 7)])
    ranked = [span(0, 3), span(4, 7)]
    assert useful_ratio(POSITIONS, ranked, [span(3, 3)], sentences, budget=4) == pytest.approx(1 / 2)
    assert useful_ratio(POSITIONS, ranked, [span(3, 3)], sentences, budget=5) == pytest.approx(1 / 3)
    assert useful_ratio(POSITIONS, [], [span(3, 3)], sentences) == pytest.approx(0)
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


@given(st.lists(st.sampled_from(["a", "bb", "ccc", "dddd"]), min_size=1, max_size=30), st.data())
def test_recall_is_that_of_reading_one_token_after_another(tokens: list[str], data: st.DataObject) -> None:
    text = " ".join(tokens)
    spans = [match.span() for match in re.finditer(r"\w+", text)]
    ranges = st.tuples(*[st.integers(0, len(tokens) - 1)] * 2).map(sorted)
    units = st.lists(ranges.map(lambda pair: Evidence("d", spans[pair[0]][0], spans[pair[1]][1])), max_size=6)
    ranked, evidence = data.draw(units), data.draw(units.filter(bool))
    budgets = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 40)))
    read = [span for unit in ranked for span in spans if unit.start <= span[0] and span[1] <= unit.end]
    sent = [{offset for start, end in read[:budget] for offset in range(start, end)} for budget in budgets]
    wanted = {o for e in evidence for o in range(e.start, e.end) if text[o] != " "}
    positions = Positions([Document("c", "x y"), Document("d", text)], words)
    found = evidence_recall(positions, ranked, evidence, budgets)
    assert found.tolist() == pytest.approx([len(wanted & one) / len(wanted) for one in sent])


def test_groups_are_drawn_whole_and_count_by_their_size() -> None:
    values, groups = np.repeat([0.0, 1.0] * 20, 25), np.repeat(np.arange(40), 25).tolist()
    alone, together = mean_interval(np.array([0.0, 1.0] * 20)), mean_interval(values, groups)
    assert tuple(together) == pytest.approx(tuple(alone)), "25 copies of 40 facts are 40 facts"
    narrow = mean_interval(values)
    assert narrow.high - narrow.low < (together.high - together.low) / 3
    assert mean_interval([1.0, 3.0], ["a", "a"]) == (2, 2, 2), "of one group nothing is known"
    assert mean_interval([1.0, 1.0, 1.0, 0.0], ["a", "a", "a", "b"]).mean == pytest.approx(3 / 4)


def test_a_p_value_agrees_with_the_exact_sign_flip_test() -> None:
    gains = [np.array([0.4, 0.1, -0.1, 0.7]), np.array([0.1, 0.0, 0.4, 0.2, -0.2])]
    signs = np.array(list(itertools.product([-1, 1], repeat=9)))
    flipped = (signs[:, :4] @ gains[0] / 4 + signs[:, 4:] @ gains[1] / 5) / 2
    observed = (gains[0].mean() + gains[1].mean()) / 2
    found = compare_over_sets([(gain, None) for gain in gains])
    assert found.p_value == pytest.approx((np.abs(flipped) >= observed - 1e-12).mean(), abs=0.01)
    assert found.difference.mean == pytest.approx(observed)
    assert compare_over_sets([(np.zeros(3), None)]) == ((0, 0, 0), 1.0), "equal pipelines do not differ"


def test_sets_of_different_size_have_the_same_weight_and_are_redrawn_alone() -> None:
    draw = np.random.default_rng(2)
    small, large = draw.normal(0.5, 0.2, 20), draw.normal(-0.1, 0.2, 400)
    found = compare_over_sets([(small, None), (large, None)]).difference
    half = 1.96 * np.sqrt(small.var() / 20 + large.var() / 400) / 2
    mean = (small.mean() + large.mean()) / 2
    assert tuple(found) == pytest.approx((mean, mean - half, mean + half), abs=0.01)


@pytest.mark.parametrize("values", [[], [1.0, np.nan]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="no numbers"):
        mean_interval(values)
