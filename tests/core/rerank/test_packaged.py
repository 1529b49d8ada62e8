import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from precise_rag.errors import InputError, ModelError
from precise_rag.rerank import PackagedReranker, load_reranker, rerank
from precise_rag.types import Candidate, FloatArray, ScoreScale, Span

TEXTS = [
    "The bridge over the Wend was opened in 1931 by the mayor of Hollin.",
    "Its two towers stand on granite and carry eight lanes.",
    "Bread prices rose in the valley after the long winter.",
    "Before the bridge, a ferry crossed the Wend every hour.",
    "The mayor of Hollin kept bees.",
]
QUESTION = "When was the bridge over the Wend opened?"


def candidates(scores: Sequence[float] | None = None) -> list[Candidate]:
    scores = scores or [0.0] * len(TEXTS)
    places = [sum(len(t) + 1 for t in TEXTS[:i]) for i in range(len(TEXTS))]
    return [
        Candidate("doc", start, start + len(text), text, score, "cosine", n_tokens=9, passage=Span(0, 400))
        for text, start, score in zip(TEXTS, places, scores, strict=True)
    ]


class ByLength:
    name = "by-length"
    score_scale: ScoreScale = "logit"

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        return np.array([len(c.text) for c in candidates], dtype=np.float32)


def test_rerank_orders_by_the_new_score_and_keeps_the_old_one() -> None:
    given = candidates([0.1, 0.2, 0.3, 0.4, 0.5])
    ranked = rerank(QUESTION, given, ByLength())
    assert [c.text for c in ranked] == sorted(TEXTS, key=len, reverse=True)
    assert ranked[0] == replace(given[0], score=67.0, score_scale="logit", scores={"retrieval": 0.1})
    assert given[0].score == 0.1
    again = rerank(QUESTION, ranked, ByLength())
    assert again[0].scores == {"retrieval": 0.1, "reranked": 67.0}


def test_a_reranker_must_give_one_score_each() -> None:
    class Short(ByLength):
        def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
            return np.zeros(1, dtype=np.float32)

    with pytest.raises(InputError, match="gave 1 scores for 5 candidates"):
        rerank(QUESTION, candidates(), Short())


def test_nothing_to_rerank() -> None:
    assert rerank(QUESTION, [], load_reranker()) == []


def test_the_packaged_reranker_reads_texts_alone() -> None:
    ranked = rerank(QUESTION, candidates(), load_reranker())
    assert ranked[0].text == TEXTS[0]
    assert ranked[-1].text in (TEXTS[2], TEXTS[1])
    assert all(0.0 < c.score < 1.0 and c.score_scale == "probability" for c in ranked)
    assert ranked[0].score > 2 * ranked[1].score


def test_the_packaged_reranker_hears_the_retrieval_scores() -> None:
    plain = candidates()
    for favourite in (1, 2):
        dense = [replace(c, scores={"dense": 0.7 if i == favourite else 0.2}) for i, c in enumerate(plain)]
        scores = load_reranker().score("What holds it up?", dense)
        assert int(scores.argmax()) == favourite


def test_of_equal_texts_the_retrieval_says_which_is_better() -> None:
    same = [
        replace(c, text="Its two towers stand on granite.") for c in candidates([0.3, 0.9, 0.6, 0.1, 0.5])
    ]
    judged = load_reranker().judge(QUESTION, same)
    assert judged.prior == pytest.approx([0.25, 1.0, 0.625, 0.0, 0.5])
    assert judged.reciprocal_rank == pytest.approx([1 / 4, 1, 1 / 2, 1 / 5, 1 / 3])
    assert np.argsort(-judged.probability).tolist() == [1, 2, 4, 0, 3]
    unscored = load_reranker().judge(QUESTION, [replace(c, score=0.0) for c in same])
    assert not unscored.prior.any()
    assert not unscored.reciprocal_rank.any()


def test_packaged_scores_do_not_depend_on_the_order_of_the_list() -> None:
    given = [
        replace(c, scores={"bm25": float(i)}) for i, c in enumerate(candidates([0.3, 0.2, 0.5, 0.1, 0.9]))
    ]
    order = random.Random(3).sample(range(len(given)), len(given))
    straight = load_reranker().score(QUESTION, given)
    shuffled = load_reranker().score(QUESTION, [given[i] for i in order])
    assert shuffled == pytest.approx(straight[order], rel=1e-5)


@pytest.mark.parametrize("query", ["", "?", "the", "桥是什么时候开通的", "\ud800 \x00"])
def test_any_query_and_text_can_be_scored(query: str) -> None:
    odd = [
        Candidate("d", 0, len(t), t, 1.0, "rank") for t in ("", "\n", "桥于1931年开通", "a" * 5000, "\ud800")
    ]
    scores = load_reranker().score(query, odd)
    assert scores.shape == (5,)
    assert np.isfinite(scores).all()


def test_the_packaged_reranker_is_read_once_and_checked(tmp_path: Path) -> None:
    assert load_reranker() is load_reranker("packaged")
    with pytest.raises(ModelError, match="holds no model"):
        PackagedReranker(tmp_path)


def test_objects_that_score_come_back_and_others_are_refused() -> None:
    mine = ByLength()
    assert load_reranker(mine) is mine
    with pytest.raises(InputError, match="dict is no reranker"):
        load_reranker(cast(Any, {}))


def test_sigmoid_of_extreme_logits_stays_a_probability() -> None:
    scores = load_reranker().score("zzz", candidates())
    assert all(0.0 <= s <= 1.0 and not math.isnan(s) for s in scores)
