from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.rerank import load_reranker, rerank
from precise_rag.types import Candidate, FloatArray, ScoreScale

TEXTS = ["a short one", "the longest of the three", "one in between"]
CANDIDATES = [Candidate("d", i, i + 1, text, 0.1 * i, "cosine") for i, text in enumerate(TEXTS)]


class ByLength:
    name = "by-length"
    score_scale: ScoreScale = "logit"

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        return np.array([len(c.text) for c in candidates], dtype=np.float32)


def test_rerank_orders_by_the_new_score_and_keeps_the_former_one() -> None:
    ranked = rerank("q", CANDIDATES, ByLength())
    assert [c.text for c in ranked] == sorted(TEXTS, key=len, reverse=True)
    assert [c.score for c in ranked] == pytest.approx([24, 14, 11])
    assert [c.scores["retrieval"] for c in ranked] == pytest.approx([0.1, 0.2, 0.0])
    assert [c.score for c in CANDIDATES] == pytest.approx([0.0, 0.1, 0.2])
    unchanged = replace(ranked[0], score=0.0, score_scale="cosine", scores={})
    assert unchanged == replace(CANDIDATES[1], score=0.0)
    assert {c.score_scale for c in ranked} == {"logit"}
    again = rerank("q", ranked, ByLength())
    assert again[0].scores == pytest.approx({"retrieval": 0.1, "reranked": 24})


def test_a_reranker_must_return_one_score_per_candidate() -> None:
    class Short(ByLength):
        def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
            return np.zeros(1, dtype=np.float32)

    with pytest.raises(InputError, match="got 1 scores for 3 candidates"):
        rerank("q", CANDIDATES, Short())


def test_an_empty_list_stays_empty() -> None:
    assert rerank("q", [], load_reranker()) == []
