import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies

from precise_rag.rerank.features import FEATURES, features, places
from precise_rag.rerank.query_terms import QueryTerms
from precise_rag.stems import QUESTION_KINDS, read_words
from precise_rag.types import Candidate


def features_of(
    query: str, texts: list[str], idf_table: np.ndarray, **scores: float
) -> list[dict[str, float]]:
    some = [
        Candidate("d", 1000 * i, 1000 * i + len(t), t, 0.5, "rank", scores=scores)
        for i, t in enumerate(texts)
    ]
    return [dict(zip(FEATURES, row.tolist(), strict=True)) for row in features(query, some, idf_table)]


def test_coverage_weights_terms_by_rarity(idf_table: np.ndarray) -> None:
    wend, both = features_of(
        "When was the Wend bridge opened?", ["Along the Wend", "A bridge opens"], idf_table
    )
    assert wend["coverage"] == pytest.approx(8 / 14)
    assert both["coverage"] == pytest.approx(6 / 14)
    assert wend["rarest_covered"] == pytest.approx(1.0)
    assert both["rarest_covered"] == pytest.approx(0.5)
    assert wend["name_coverage"] == pytest.approx(1.0)
    assert both["name_coverage"] == pytest.approx(0.0)
    assert wend["query_terms"] == pytest.approx(3)
    assert wend["query_rarity"] == pytest.approx(14 / 3)


def test_pairs_and_windows_see_what_is_close_together(idf_table: np.ndarray) -> None:
    gap = "so " * 20
    near, far = features_of(
        "Wend bridge", ["The bridge on the Wend", f"The bridge {gap} the Wend"], idf_table
    )
    assert (near["pair_coverage"], far["pair_coverage"]) == pytest.approx((1.0, 0.0))
    assert near["window_coverage"] == pytest.approx(1.0)
    assert far["window_coverage"] == pytest.approx(8 / 12)


def test_terms_leave_out_words_that_shape_a_question_unless_there_are_no_others(
    idf_table: np.ndarray,
) -> None:
    terms = QueryTerms.of("When was the Wend bridge opened?", idf_table)
    assert terms.rarity == pytest.approx({"wend": 8.0, "bridg": 4.0, "open": 2.0})
    assert terms.names == {"wend"}
    assert list(QueryTerms.of("Who was that?", idf_table).rarity) == ["who", "was", "that"]


def test_close_pairs_are_those_of_all_positions_counted_in_words(idf_table: np.ndarray) -> None:
    terms = QueryTerms.of("Wend bridge", idf_table)
    assert terms.positions(read_words("A bridge over the Wend, a bridge.")) == {"bridg": [1, 6], "wend": [4]}
    first, second = terms.rarity
    for a, b in [([0], [3]), ([0], [4]), ([0, 9, 20], [5, 13, 17]), ([50], [1, 2, 3, 47]), ([], [1])]:
        close = any(abs(i - j) <= 3 for i in a for j in b)
        assert terms.pair_coverage({first: a, second: b}) == pytest.approx(float(close))


def test_answer_type_by_the_kind_of_question(idf_table: np.ndarray) -> None:
    texts = ["It opened in 1931.", "It was opened by Ann Lee."]
    for query, expected in (("When was it?", [1.0, 0.0]), ("Who opened it?", [0.0, 1.0])):
        assert [row["answer_type"] for row in features_of(query, texts, idf_table)] == expected
    assert math.isnan(features_of("Why a bridge?", ["Because."], idf_table)[0]["answer_type"])


def test_a_term_that_all_candidates_have_tells_none_of_them_apart(idf_table: np.ndarray) -> None:
    texts = ["The Wend bridge", *["A bridge"] * 8]
    wend, other = features_of("Wend bridge", texts, idf_table)[:2]
    assert other["coverage"] == pytest.approx(4 / 12)
    assert other["here_coverage"] < 0.05 < 0.95 < wend["here_coverage"] + 0.05
    assert other["here_rarest_covered"] < other["rarest_covered"]
    assert wend["here_lexical_over_usual"] > wend["lexical_over_usual"]
    (nowhere, *_) = features_of("Wend bridge", ["A ferry"] * 9, idf_table)
    assert wend["query_rarity_here"] < nowhere["query_rarity_here"]
    assert math.isnan(features_of("Wend bridge", texts[:7], idf_table)[0]["here_coverage"])


def test_unknown_features_are_nan(idf_table: np.ndarray) -> None:
    row = features_of("bridge", ["A bridge"], idf_table)[0]
    known = {name for name, value in row.items() if not math.isnan(value)}
    of_the_text = {"coverage", "window_coverage", "lexical", "rarest_covered", "log_words", "novelty"}
    of_the_text |= {"letter_share", "sentence_end", "lexical_to_own", "query_terms", "query_rarity"}
    assert known == of_the_text | set(QUESTION_KINDS)


def test_retrieval_scores_enter_by_word_relative_to_the_rarity_of_the_query(idf_table: np.ndarray) -> None:
    some = [
        Candidate("a", 0, 8, "A bridge", 3.0, "bm25", scores={"dense": 0.5, "core": 0.4, "bm25": 3.0}),
        Candidate("a", 100, 108, "A bridge", 1.0, "bm25", scores={"dense": 0.7, "bm25_passage": 1.5}),
        Candidate("b", 0, 8, "No ferry", 2.0, "bm25", scores={"bm25": 2.0, "other": 1.0}),
    ]
    rows = [dict(zip(FEATURES, row.tolist(), strict=True)) for row in features("bridge", some, idf_table)]
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


def test_comparison_is_with_the_own_document_and_with_what_is_usual(idf_table: np.ndarray) -> None:
    some = candidates([("a", 0.9), ("a", 0.1), *((f"other {i}", 0.8 - i / 10) for i in range(7))])
    rows = features("bridge", some, idf_table)
    to_own, over = (rows[:, FEATURES.index(name)] for name in ("dense_to_own", "dense_over_usual"))
    assert to_own == pytest.approx([0.0, -0.8, *[0.0] * 7], abs=1e-6)
    assert over[[0, 1]] == pytest.approx([0.6, -0.2], abs=1e-6)
    assert rows[:, FEATURES.index("usual_dense")] == pytest.approx(0.3)
    few = features("bridge", some[:7], idf_table)
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


def test_prose_differs_from_headings(idf_table: np.ndarray) -> None:
    prose, heading = features_of("bridge", ["A bridge opens.", "Bridge 2\n-----"], idf_table)
    assert (prose["sentence_end"], heading["sentence_end"]) == (1.0, 0.0)
    assert prose["letter_share"] == pytest.approx(12 / 15)
    assert heading["letter_share"] == pytest.approx(6 / 14)
