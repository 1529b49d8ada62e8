from dataclasses import replace
from typing import Any

import pytest

from precise_rag.errors import InputError
from precise_rag.rerank import load_reranker, rerank
from precise_rag.types import Candidate
from support.documents import read_cases
from support.scored import Scored

TEXTS = ["a short one", "the longest of the three", "one in between"]
CANDIDATES = [Candidate("d", i, i + 1, text, 0.1 * i, "cosine") for i, text in enumerate(TEXTS)]
BY_LENGTH = Scored(len, "logit")


def test_rerank_orders_by_the_new_score_and_keeps_the_former_one() -> None:
    ranked = rerank("q", CANDIDATES, BY_LENGTH)
    assert [c.text for c in ranked] == sorted(TEXTS, key=len, reverse=True)
    assert [c.score for c in ranked] == pytest.approx([24, 14, 11])
    assert [c.scores["retrieval"] for c in ranked] == pytest.approx([0.1, 0.2, 0.0])
    assert [c.score for c in CANDIDATES] == pytest.approx([0.0, 0.1, 0.2])
    unchanged = replace(ranked[0], score=0.0, score_scale="cosine", scores={})
    assert unchanged == replace(CANDIDATES[1], score=0.0)
    assert {c.score_scale for c in ranked} == {"logit"}
    again = rerank("q", ranked, BY_LENGTH)
    assert again[0].scores == pytest.approx({"retrieval": 0.1, "reranked": 24})


def test_a_reranker_must_return_one_score_per_candidate() -> None:
    assert rerank("q", [], BY_LENGTH) == []
    short: Any = Scored(len)
    short.score = lambda query, candidates: [0.5]
    with pytest.raises(InputError, match="got 1 for 3 candidates"):
        rerank("q", CANDIDATES, short)


def test_a_long_text_is_as_good_as_its_best_sentence() -> None:
    texts = read_cases("reranking.json", "oil first")
    reranker: Any = Scored(lambda text: float(text.strip().startswith("Oil")))
    reranker.longest_text = 5
    candidates = [
        Candidate("d", 100 * n, 100 * n + len(t), t, 0.5, "cosine", scores={"dense": 0.5})
        for n, t in enumerate(texts)
    ]
    ranked = rerank("Oil", candidates, reranker)
    assert {c.text: c.score for c in ranked} == dict(zip(texts, [1.0, 1.0, 0.0], strict=True))
    sentences = ["Oil first.", "Gas is cheap here.", "Oil is dear there."]
    assert [c.text.strip() for c in reranker.read[:3]] == sentences
    assert all(c.scores == {"dense": 0.5, "retrieval": 0.5} for c in ranked)
    reranker.score = lambda query, parts: [0.5] * (len(parts) + 1)
    with pytest.raises(InputError, match="must return one score per candidate"):
        rerank("Oil", candidates, reranker)
    for name in ("packaged", "cascade"):
        assert getattr(load_reranker(name), "longest_text", None) == 256
