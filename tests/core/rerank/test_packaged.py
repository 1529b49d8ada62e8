import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from precise_rag.rerank import PackagedReranker, load_reranker, rerank
from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds
from precise_rag.rerank.packaged import network_logits
from precise_rag.types import Candidate, Span
from support.documents import read_cases

TEXTS = read_cases("reranking.json", "of the bridge")
QUESTION = "When was the bridge over the Wend opened?"


def candidates(scores: Sequence[float] | None = None) -> list[Candidate]:
    scores = scores or [0.0] * len(TEXTS)
    places = [sum(len(t) + 1 for t in TEXTS[:i]) for i in range(len(TEXTS))]
    return [
        Candidate("doc", start, start + len(text), text, score, "cosine", n_tokens=9, passage=Span(0, 400))
        for text, start, score in zip(TEXTS, places, scores, strict=True)
    ]


def test_texts_alone_are_enough_and_of_equal_ones_the_better_retrieval_score_wins() -> None:
    ranked = rerank(QUESTION, candidates(), load_reranker("packaged"))
    assert ranked[0].text == TEXTS[0]
    assert all(0.0 < c.score < 1.0 and c.score_scale == "probability" for c in ranked)
    assert ranked[0].score > 0.5 > ranked[1].score
    same = [replace(c, text="Its towers stand on granite.") for c in candidates([0.3, 0.9, 0.6, 0.1, 0.5])]
    scores = load_reranker("packaged").score(QUESTION, same)
    assert np.argsort(-scores).tolist() == [1, 2, 4, 0, 3]
    unscored = load_reranker("packaged").score(QUESTION, [replace(c, score=0.0) for c in same])
    assert unscored == pytest.approx(unscored[0], rel=1e-5)


@pytest.mark.parametrize(
    "query", [QUESTION, "Wann wurde die Brücke eröffnet?", "Когда открыли мост?", "桥何时开放?"]
)
def test_what_the_search_says_of_the_meaning_counts_in_every_script(query: str) -> None:
    given = candidates()[:3]
    scores = PackagedReranker().score(
        query, [replace(c, scores={"dense": d}) for c, d in zip(given, (0.2, 0.3, 0.9), strict=True)]
    )
    assert np.argmax(scores) == 2


def test_scores_do_not_depend_on_the_order_of_the_list() -> None:
    given = [
        replace(c, scores={"bm25": float(i)}) for i, c in enumerate(candidates([0.3, 0.2, 0.5, 0.1, 0.9]))
    ]
    order = random.Random(3).sample(range(len(given)), len(given))
    straight = load_reranker("packaged").score(QUESTION, given)
    shuffled = load_reranker("packaged").score(QUESTION, [given[i] for i in order])
    assert shuffled == pytest.approx(straight[order], rel=1e-5)


@pytest.mark.parametrize("query", ["", "zzz", "the", "桥是什么时候开通的", "\ud800 \x00"])
def test_any_query_and_text_can_be_scored(query: str) -> None:
    texts = ("", "\n", "桥于1931年开通", "a" * 5000, "\ud800")
    given = [Candidate("d", 0, len(t), t, 1.0, "rank") for t in texts]
    scores = load_reranker("packaged").score(query, given)
    assert scores.shape == (5,)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert load_reranker("packaged").score(query, []).shape == (0,)


# Two features and one hidden unit. Inputs are (known 1, known 2, unknown 1, unknown 2).
TENSORS = {
    "mean": np.array([1.0, 0.0]),
    "deviation": np.array([2.0, 1.0]),
    "linear": np.array([1.0, 10.0, 100.0, 1000.0]),
    "bias": np.array([0.5]),
    "weight1": np.array([[1.0, 0.0, 0.0, 0.0]]),
    "bias1": np.array([1.0]),
    "weight2": np.array([[2.0]]),
    "bias2": np.array([0.0]),
    "weight3": np.array([3.0]),
}


def silu(x: float) -> float:
    return x / (1 + math.exp(-x))


def test_logits_worked_out_by_hand() -> None:
    rows = np.array([[3.0, 2.0], [np.nan, -1.0], [1000.0, np.nan]], dtype=np.float32)
    expected = [
        1.0 + 20.0 + 0.5 + 3 * silu(2 * silu(2.0)),
        100.0 - 10.0 + 0.5 + 3 * silu(2 * silu(1.0)),
        4.0 + 1000.0 + 0.5 + 3 * silu(2 * silu(5.0)),
    ]
    assert network_logits({k: t.astype(np.float32) for k, t in TENSORS.items()}, rows) == pytest.approx(
        expected, rel=1e-5
    )


def test_probabilities_worked_out_by_hand() -> None:
    regression = LogisticRegression({"a": 2.0, "best": -1.0, "offset": 0.5})
    with np.errstate(over="raise", invalid="raise"):
        a = np.array([0.0, 1.0, -1e4, 1e4], dtype=np.float32)
        found = regression({"a": a, "best": 3.0, "unused": a})
    assert found == pytest.approx([1 / (1 + math.exp(2.5)), 1 / (1 + math.exp(0.5)), 0.0, 1.0])
    assert log_odds(found[:2]) == pytest.approx([-2.5, -0.5], abs=1e-3)
    assert np.isfinite(log_odds(found)).all()
    with pytest.raises(KeyError, match="best"):
        regression({"a": 1.0})
