import math

import numpy as np
import pytest

from precise_rag.rerank.features import FEATURES, features
from precise_rag.types import Candidate


def features_of(
    query: str, texts: list[str], idf_table: np.ndarray, **scores: float
) -> list[dict[str, float]]:
    given = [
        Candidate("d", 1000 * i, 1000 * i + len(t), t, 0.5, "rank", scores=scores)
        for i, t in enumerate(texts)
    ]
    return [dict(zip(FEATURES, row.tolist(), strict=True)) for row in features(query, given, idf_table)]


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
    assert wend["list_coverage"] == pytest.approx(8 / 14)
    assert both["list_coverage"] == pytest.approx(8 / 14)
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
        "dense_to_best",
        "dense_z",
        "bm25_log",
        "bm25_to_best",
        "core_to_best",
        "bm25_passage_to_best",
        "prior",
        "reciprocal_rank",
        "near_lexical",
        "near_coverage",
        "near_dense",
        "document_share",
        "list_dense",
    }


def test_retrieval_scores_enter_as_they_are_and_relative_to_the_list(idf_table: np.ndarray) -> None:
    given = [
        Candidate("a", 0, 8, "A bridge", 3.0, "bm25", scores={"dense": 0.5, "bm25": 3.0}),
        Candidate("a", 100, 108, "A bridge", 1.0, "bm25", scores={"dense": 0.7, "bm25": 1.0}),
        Candidate("b", 0, 8, "No ferry", 2.0, "bm25", scores={"bm25": 2.0}),
    ]
    rows = [dict(zip(FEATURES, row.tolist(), strict=True)) for row in features("bridge", given, idf_table)]
    assert [r["prior"] for r in rows] == pytest.approx([1.0, 0.0, 0.5])
    assert [r["reciprocal_rank"] for r in rows] == pytest.approx([1.0, 1 / 3, 0.5])
    assert [r["bm25_to_best"] for r in rows] == pytest.approx([1.0, 1 / 3, 2 / 3])
    assert rows[0]["dense_to_best"] == pytest.approx(-0.2)
    assert [r["dense_z"] for r in rows[:2]] == pytest.approx([-1.0, 1.0], abs=1e-4)
    assert math.isnan(rows[2]["dense"])
    assert rows[0]["near_dense"] == pytest.approx(0.0)
    assert rows[1]["near_dense"] == pytest.approx(-0.2)
    assert [r["document_share"] for r in rows] == pytest.approx([1.0, 1.0, 0.0])
    assert math.isnan(rows[2]["near_lexical"])


def test_prose_differs_from_headings(idf_table: np.ndarray) -> None:
    prose, heading = features_of("bridge", ["A bridge opens.", "Bridge 2\n-----"], idf_table)
    assert (prose["sentence_end"], heading["sentence_end"]) == (1.0, 0.0)
    assert prose["letter_share"] == pytest.approx(12 / 15)
    assert heading["letter_share"] == pytest.approx(6 / 14)
