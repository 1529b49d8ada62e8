import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies

from precise_rag.rerank.features import FEATURES, features, places
from precise_rag.rerank.query_terms import QueryTerms
from precise_rag.stems import IDF_STEPS, QUESTION_KINDS, read_words, slot
from precise_rag.types import Candidate
from support.documents import read_cases

IDF_TABLE = np.full(1 << 12, IDF_STEPS, dtype=np.uint8)
for word, rarity in {"bridg": 4.0, "wend": 8.0, "open": 2.0}.items():
    IDF_TABLE[slot(word, len(IDF_TABLE))] = int(rarity * IDF_STEPS)
"""Rarity of three stems; 1 for all other words."""


def features_of(query: str, texts: list[str], **scores: float) -> list[dict[str, float]]:
    some = [
        Candidate("d", 1000 * i, 1000 * i + len(t), t, 0.5, "rank", scores=scores)
        for i, t in enumerate(texts)
    ]
    return [dict(zip(FEATURES, row.tolist(), strict=True)) for row in features(query, some, IDF_TABLE)]


@pytest.mark.parametrize(("query", "texts", "expected"), read_cases("reranking.json", "features"))
def test_features_worked_out_by_hand(query: str, texts: list[str], expected: dict[str, list[str]]) -> None:
    """Terms weigh by their rarity; words that shape a question are none unless there are no others."""
    rows = features_of(query, texts)
    for name, values in expected.items():
        assert [row[name] for row in rows] == pytest.approx([*map(float, map(Fraction, values))]), name
    assert math.isnan(features_of("Why a bridge?", ["Because."])[0]["answer_type"])


def test_close_pairs_are_those_of_all_positions_counted_in_words() -> None:
    terms = QueryTerms.of("Wend bridge", IDF_TABLE)
    assert terms.positions(read_words("A bridge over the Wend, a bridge.")) == {"bridg": [1, 6], "wend": [4]}
    assert read_words("ห้อง ๒๑๗").stems[-1] == "217"
    first, second = terms.rarity
    for a, b in [([0], [3]), ([0], [4]), ([0, 9, 20], [5, 13, 17]), ([50], [1, 2, 3, 47]), ([], [1])]:
        close = any(abs(i - j) <= 3 for i in a for j in b)
        assert terms.pair_coverage({first: a, second: b}) == pytest.approx(float(close))


def test_a_term_that_all_candidates_have_tells_none_of_them_apart() -> None:
    texts = ["The Wend bridge", *["A bridge"] * 8]
    wend, other = features_of("Wend bridge", texts)[:2]
    assert other["coverage"] == pytest.approx(4 / 12)
    assert other["here_coverage"] < 0.05 < 0.95 < wend["here_coverage"] + 0.05
    assert other["here_rarest_covered"] < other["rarest_covered"]
    assert wend["here_lexical_over_usual"] > wend["lexical_over_usual"]
    (nowhere, *_) = features_of("Wend bridge", ["A ferry"] * 9)
    assert wend["query_rarity_here"] < nowhere["query_rarity_here"]
    assert math.isnan(features_of("Wend bridge", texts[:7])[0]["here_coverage"])


def test_unknown_features_are_nan() -> None:
    row = features_of("bridge", ["A bridge"])[0]
    known = {name for name, value in row.items() if not math.isnan(value)}
    of_the_text = {"coverage", "window_coverage", "lexical", "rarest_covered", "log_words", "novelty"}
    of_the_text |= {"letter_share", "sentence_end", "lexical_to_own", "query_terms", "query_rarity"}
    assert known == of_the_text | set(QUESTION_KINDS)


def test_retrieval_scores_enter_by_word_relative_to_the_rarity_of_the_query() -> None:
    some = [
        Candidate("a", 0, 8, "A bridge", 3.0, "bm25", scores={"dense": 0.5, "core": 0.4, "bm25": 3.0}),
        Candidate("a", 100, 108, "A bridge", 1.0, "bm25", scores={"dense": 0.7, "bm25_passage": 1.5}),
        Candidate("b", 0, 8, "No ferry", 2.0, "bm25", scores={"bm25": 2.0, "other": 1.0}),
    ]
    rows = [dict(zip(FEATURES, row.tolist(), strict=True)) for row in features("bridge", some, IDF_TABLE)]
    rarity = rows[0]["query_rarity"]
    assert (rows[0]["dense"], rows[0]["core"]) == pytest.approx((0.5, 0.4))
    assert rows[0]["bm25_share"] == pytest.approx(3.0 / rarity)
    assert rows[1]["bm25_passage_share"] == pytest.approx(1.5 / rarity)
    assert rows[2]["bm25_share"] == pytest.approx(2.0 / rarity)
    assert math.isnan(rows[2]["dense"])
    assert math.isnan(rows[2]["bm25_passage_share"])
    assert (rows[0]["near_dense"], rows[1]["near_dense"]) == pytest.approx((0.7, 0.5))
    assert math.isnan(rows[2]["near_lexical"])


def candidates(dense: list[tuple[str, float]]) -> list[Candidate]:
    return [
        Candidate(doc, 1000 * i, 1000 * i + 1, "x", score, "cosine", scores={"dense": score})
        for i, (doc, score) in enumerate(dense)
    ]


def test_comparison_is_with_the_own_document_and_with_what_is_usual() -> None:
    some = candidates([("a", 0.9), ("a", 0.1), *((f"other {i}", 0.8 - i / 10) for i in range(7))])
    rows = features("bridge", some, IDF_TABLE)
    to_own, over = (rows[:, FEATURES.index(name)] for name in ("dense_to_own", "dense_over_usual"))
    assert to_own == pytest.approx([0.0, -0.8, *[0.0] * 7], abs=1e-6)
    assert over[[0, 1]] == pytest.approx([0.6, -0.2], abs=1e-6)
    assert rows[:, FEATURES.index("usual_dense")] == pytest.approx(0.3)
    few = features("bridge", some[:7], IDF_TABLE)
    assert np.isnan(few[:, FEATURES.index("dense_over_usual")]).all()


def test_places_leave_out_the_best_two_other_documents() -> None:
    some = candidates([("a", 0.9), ("a", 0.1), ("b", 0.8), ("c", 0.7), ("d", 0.6), ("e", 0.5)])
    assert places(some) == pytest.approx(np.log2([1, 4, 1, 1, 2, 3]))
    assert places([replace(c, score=0.5) for c in some]) == pytest.approx(0.0)


@given(strategies.data())
def test_the_best_texts_of_other_documents_change_hardly_anything(data: strategies.DataObject) -> None:
    """Texts with higher scores than all others raise what is usual by their number of places, and make no
    word of the query more usual."""
    dense = [0.5 - i / 100 for i in range(40)]
    mine = candidates([(f"honest {i % 9}", score) for i, score in enumerate(dense)])
    n = data.draw(strategies.integers(1, 5))
    highest = data.draw(strategies.floats(0.6, 1e6))
    hostile = [
        replace(c, doc_id=f"hostile {i}", text="bridge bridge", score=highest, scores={"dense": highest})
        for i, c in enumerate(mine[:n])
    ]
    table = np.full(16, 8, dtype=np.uint8)
    alone = features("Which bridge?", mine, table)
    beside = features("Which bridge?", [*hostile, *mine], table)[n:]
    usual = [FEATURES.index(name) for name in FEATURES if "usual" in name]
    rest = np.setdiff1d(np.arange(len(FEATURES)), usual)
    assert np.array_equal(alone[:, rest], beside[:, rest], equal_nan=True)
    raised = FEATURES.index("usual_dense")
    assert 0 <= beside[0, raised] - alone[0, raised] <= 0.01 * n
