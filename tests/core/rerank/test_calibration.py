"""A reranker that somebody brings gives the order; ours gives the level."""

import logging
import math
from collections.abc import Callable, Sequence
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag import Document, PreciseRAG, Trace
from precise_rag.index import HybridIndex
from precise_rag.rerank import LevelledReranker, calibrated, load_reranker, rerank
from precise_rag.rerank.calibration import matched
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.testing import HashEncoder
from precise_rag.types import OWN, UNRANKED, Candidate, FloatArray
from support.rerankers import QUESTION, Logits

CHANGES: dict[str, Callable[[float], float]] = {
    "a fifth": lambda score: 0.2 * score,
    "8 more": lambda score: score + 8.0,
    "squeezed": lambda score: 0.5 + 0.1 / (1.0 + math.exp(-score)),
    "cubed probability": lambda score: (1.0 / (1.0 + math.exp(-score))) ** 3,
    "large and negative": lambda score: -1e6 * math.exp(-score),
}
"""Strictly increasing changes of a logit."""
DOCUMENTS = [Document(page, topics[page]) for page in ("try", "while", "with", "for")]


@pytest.fixture(scope="module")
def index() -> HybridIndex:
    return HybridIndex.build(DOCUMENTS, HashEncoder())


class Scorer(Logits):
    """The same, with texts that it cannot score."""

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.broken = broken

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        scores = super().score(query, candidates)
        return np.where([c.text in self.broken for c in candidates], math.nan, scores)


def found(index: HybridIndex) -> list[Candidate]:
    return index.search(QUESTION, 30, returns="sentence")


@given(
    order=st.lists(st.floats(-20, 20, width=16), min_size=1, max_size=30),
    draw=st.randoms(use_true_random=False),
    change=st.sampled_from(sorted(CHANGES)),
)
def test_levels_go_by_rank(order: list[float], draw: Any, change: str) -> None:
    own = np.array(order)
    levels = np.array([draw.random() for _ in order], dtype=np.float32)
    changed = np.array([CHANGES[change](score) for score in order])
    if len(set(changed.tolist())) == len(set(order)):  # not squeezed into one number by rounding
        assert matched(changed, levels) == pytest.approx(matched(own, levels))
    found = matched(own, levels)
    assert sorted(found.tolist()) == pytest.approx(sorted(levels.tolist()))
    for rank, row in enumerate(own):
        assert all(found[rank] >= found[other] for other in np.flatnonzero(own < row))


def test_the_order_counts_by_its_share_levels_part_ties_and_ours_stay_as_they_are(index: HybridIndex) -> None:
    candidates, default = found(index), load_reranker("default")
    alone = LevelledReranker(Scorer(), share=1.0)
    by_order = sorted(zip(Scorer().score(QUESTION, candidates), [c.id for c in candidates], strict=True))
    ranked = rerank(QUESTION, candidates, alone)
    assert [c.scores[OWN] for c in ranked] == pytest.approx([score for score, _ in reversed(by_order)])
    ours = [c.id for c in rerank(QUESTION, candidates, default)]
    assert [c.id for c in rerank(QUESTION, candidates, LevelledReranker(Scorer(), share=0.0))] == ours
    assert [c.id for c in ranked] != ours
    packaged = load_reranker("packaged")
    assert calibrated(packaged) is packaged
    assert isinstance(calibrated(Scorer()), LevelledReranker)
    levels = np.array([0.1, 0.9, 0.5], dtype=np.float32)
    assert matched(np.array([2.0, 1.0, 1.0]), levels).tolist() == pytest.approx([0.9, 0.5, 0.1])


@pytest.mark.parametrize(("share", "furthest"), [(0.25, 1 / 6), (0.5, 0.5), (0.8, 2.0)])
def test_what_the_levels_find_stays_near_its_probability(
    index: HybridIndex, share: float, furthest: float
) -> None:
    class Backwards(Scorer):
        def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
            return -load_reranker("default").score(query, candidates)

    several = found(index)
    order = np.argsort(load_reranker("default").score(QUESTION, several))
    candidates = [several[order[-1]], several[order[0]]]
    ours = log_odds(load_reranker("default").score(QUESTION, candidates))
    told = log_odds(LevelledReranker(Backwards(), share=share).score(QUESTION, candidates))
    ends = share * ours.max() + (1 - share) * ours.min(), share * ours.min() + (1 - share) * ours.max()
    raised = max(0.0, ours.max() - max(*ends, ours.max() - furthest))
    assert told[ours.argmin()] == pytest.approx(ends[0] + raised, abs=1e-3)
    assert told[ours.argmax()] == pytest.approx(max(ends[1], ours.max() - furthest) + raised, abs=1e-3)
    assert told.max() >= ours.max() - 1e-3


def test_a_broken_score_costs_the_rank_and_is_reported(
    index: HybridIndex, caplog: pytest.LogCaptureFixture
) -> None:
    whole = PreciseRAG(index, reranker=Scorer()).retrieve(QUESTION)
    best = whole.kept[0]
    trace = Trace(QUESTION)
    with caplog.at_level(logging.WARNING):
        kept = PreciseRAG(index, reranker=Scorer(broken=[best.text])).retrieve(QUESTION, trace=trace).kept
    assert best.id in [c.id for c in kept]
    assert "gave no usable score for 1 of" in caplog.text
    (record,) = [stage for stage in trace.stages if stage.name == "rerank"]
    (told,) = [d for d in record.selection.decisions if UNRANKED in d.candidate.scores]
    assert (told.candidate.text, OWN in told.candidate.scores) == (best.text, False)
    assert told.reason == "logits gave it no usable score: it has our probability"
