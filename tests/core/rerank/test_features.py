import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies

from precise_rag.rerank.features import FEATURES, features, places
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


def test_answer_type_by_the_kind_of_question(idf_table: np.ndarray) -> None:
    year, none = features_of(
        "When was the bridge opened?", ["It opened in 1931.", "It was opened by Ann Lee."], idf_table
    )
    assert (year["answer_type"], none["answer_type"]) == (1.0, 0.0)
    year, name = features_of(
        "Who opened the bridge?", ["It opened in 1931.", "It was opened by Ann Lee."], idf_table
    )
    assert (year["answer_type"], name["answer_type"]) == (0.0, 1.0)
    assert math.isnan(features_of("Why a bridge?", ["Because."], idf_table)[0]["answer_type"])


def test_unknown_features_are_nan(idf_table: np.ndarray) -> None:
    row = features_of("bridge", ["A bridge"], idf_table)[0]
    unknown = {name for name, value in row.items() if math.isnan(value)}
    assert unknown == {
        "pair_coverage",
        "name_coverage",
        "answer_type",
        "dense",
        "core",
        "bm25_share",
        "bm25_passage_share",
        "dense_to_rivals",
        "core_to_rivals",
        "bm25_to_rivals",
        "bm25_passage_to_rivals",
        "rivals_dense",
        "near_lexical",
        "near_coverage",
        "near_dense",
    }


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


def test_rivals_are_those_of_the_document_and_of_the_others_all_but_the_best_two(
    idf_table: np.ndarray,
) -> None:
    dense = [("a", 0.9), ("a", 0.1), ("b", 0.8), ("c", 0.7), ("d", 0.6), ("e", 0.5)]
    some = [
        Candidate(doc, 1000 * i, 1000 * i + 1, "x", score, "cosine", scores={"dense": score})
        for i, (doc, score) in enumerate(dense)
    ]
    to_rivals = features("bridge", some, idf_table)[:, FEATURES.index("dense_to_rivals")]
    assert to_rivals == pytest.approx([0.0, -0.8, 0.0, 0.0, -0.1, -0.2], abs=1e-6)
    assert places(some) == pytest.approx(np.log2([1, 4, 1, 1, 2, 3]))
    assert places([replace(c, score=0.5) for c in some]) == pytest.approx(0.0)


@given(strategies.data())
def test_texts_of_two_other_documents_change_no_row(data: strategies.DataObject) -> None:
    words = strategies.lists(strategies.sampled_from(["bridge", "Wend", "opened", "1931", "?"]), max_size=30)
    scores = strategies.dictionaries(
        strategies.sampled_from(["dense", "core", "bm25", "bm25_passage"]),
        strategies.floats(-1e6, 1e6),
    )
    mine = [
        Candidate("mine", 100 * i, 100 * i + 9, text, 0.5, "rank", scores={"dense": 0.4, "bm25": 2.0})
        for i, text in enumerate(["The bridge was opened in 1931.", "A ferry crossed the Wend."])
    ]
    texts = data.draw(strategies.lists(words.map(" ".join), min_size=1, max_size=5))
    others = [
        Candidate(other, 0, len(text), text, data.draw(strategies.floats(0, 9)), "rank", scores=found)
        for text, found, other in (
            (text, data.draw(scores), data.draw(strategies.sampled_from(["x", "y"]))) for text in texts
        )
    ]
    table = np.full(16, 8, dtype=np.uint8)
    question = "When was the bridge over the Wend opened?"
    alone = features(question, mine, table)
    beside = features(question, [*others, *mine], table)[len(others) :]
    assert np.array_equal(alone, beside, equal_nan=True)
    before, now = (places(several)[-len(mine) :] for several in (mine, [*others, *mine]))
    assert np.array_equal(before, now)


def test_prose_differs_from_headings(idf_table: np.ndarray) -> None:
    prose, heading = features_of("bridge", ["A bridge opens.", "Bridge 2\n-----"], idf_table)
    assert (prose["sentence_end"], heading["sentence_end"]) == (1.0, 0.0)
    assert prose["letter_share"] == pytest.approx(12 / 15)
    assert heading["letter_share"] == pytest.approx(6 / 14)
