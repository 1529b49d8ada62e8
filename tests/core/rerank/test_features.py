import math

import numpy as np
import pytest

from precise_rag.rerank.features import FEATURES, features
from precise_rag.stems import IDF_STEPS, slot, stem
from precise_rag.types import Candidate

RARITY = {"bridg": 4.0, "wend": 8.0, "open": 2.0}


@pytest.fixture
def table() -> np.ndarray:
    table = np.full(1 << 12, IDF_STEPS, dtype=np.uint8)
    for word, rarity in RARITY.items():
        table[slot(word, len(table))] = int(rarity * IDF_STEPS)
    return table


def one(query: str, texts: list[str], table: np.ndarray, **scores: float) -> list[dict[str, float]]:
    given = [
        Candidate("d", 1000 * i, 1000 * i + len(t), t, 0.5, "rank", scores=scores)
        for i, t in enumerate(texts)
    ]
    return [dict(zip(FEATURES, row.tolist(), strict=True)) for row in features(query, given, table)]


def test_coverage_weighs_terms_by_rarity(table: np.ndarray) -> None:
    wend, both = one("When was the Wend bridge opened?", ["Along the Wend", "A bridge opens"], table)
    assert stem("bridge") == "bridg"
    assert wend["coverage"] == pytest.approx(8 / 14)
    assert both["coverage"] == pytest.approx(6 / 14)
    assert wend["rarest_covered"] == 1.0
    assert both["rarest_covered"] == 0.5
    assert wend["name_coverage"] == 1.0
    assert both["name_coverage"] == 0.0
    assert wend["list_coverage"] == both["list_coverage"] == pytest.approx(8 / 14)
    assert wend["query_terms"] == 3
    assert wend["query_rarity"] == pytest.approx(14 / 3)


def test_pairs_and_windows_see_what_stands_together(table: np.ndarray) -> None:
    gap = "so " * 20
    near, far = one("Wend bridge", ["The bridge on the Wend", f"The bridge {gap} the Wend"], table)
    assert (near["pair_coverage"], far["pair_coverage"]) == (1.0, 0.0)
    assert near["window_coverage"] == 1.0
    assert far["window_coverage"] == pytest.approx(8 / 12)


def test_a_number_is_looked_for_where_one_is_asked_for(table: np.ndarray) -> None:
    year, none = one(
        "When was the bridge opened?", ["It opened in 1931.", "It was opened by Ann Lee."], table
    )
    assert (year["answer_type"], none["answer_type"]) == (1.0, 0.0)
    year, name = one("Who opened the bridge?", ["It opened in 1931.", "It was opened by Ann Lee."], table)
    assert (year["answer_type"], name["answer_type"]) == (0.0, 1.0)
    assert math.isnan(one("Why a bridge?", ["Because."], table)[0]["answer_type"])


def test_what_is_unknown_is_not_a_number(table: np.ndarray) -> None:
    row = one("bridge", ["A bridge"], table)[0]
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


def test_retrieval_scores_are_taken_as_they_are_and_within_the_list(table: np.ndarray) -> None:
    given = [
        Candidate("a", 0, 8, "A bridge", 3.0, "bm25", scores={"dense": 0.5, "bm25": 3.0}),
        Candidate("a", 100, 108, "A bridge", 1.0, "bm25", scores={"dense": 0.7, "bm25": 1.0}),
        Candidate("b", 0, 8, "No ferry", 2.0, "bm25", scores={"bm25": 2.0}),
    ]
    rows = [dict(zip(FEATURES, row.tolist(), strict=True)) for row in features("bridge", given, table)]
    assert [r["prior"] for r in rows] == [1.0, 0.0, 0.5]
    assert [r["reciprocal_rank"] for r in rows] == pytest.approx([1.0, 1 / 3, 0.5])
    assert [r["bm25_to_best"] for r in rows] == pytest.approx([1.0, 1 / 3, 2 / 3])
    assert rows[0]["dense_to_best"] == pytest.approx(-0.2)
    assert [r["dense_z"] for r in rows[:2]] == pytest.approx([-1.0, 1.0], abs=1e-4)
    assert math.isnan(rows[2]["dense"])
    assert rows[0]["near_dense"] == 0.0
    assert rows[1]["near_dense"] == pytest.approx(-0.2)
    assert [r["document_share"] for r in rows] == pytest.approx([1.0, 1.0, 0.0])
    assert math.isnan(rows[2]["near_lexical"])


def test_prose_is_told_from_headings(table: np.ndarray) -> None:
    prose, heading = one("bridge", ["A bridge opens.", "Bridge 2\n-----"], table)
    assert (prose["sentence_end"], heading["sentence_end"]) == (1.0, 0.0)
    assert prose["letter_share"] == pytest.approx(12 / 15)
    assert heading["letter_share"] == pytest.approx(6 / 14)
