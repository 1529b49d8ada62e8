"""Reranking of candidates."""

import math
from collections.abc import Iterable
from dataclasses import replace

from precise_rag.checks import items_of
from precise_rag.protocols import Reranker
from precise_rag.rerank.adapted import AdaptedReranker
from precise_rag.rerank.levels import LevelledReranker, usable_scores
from precise_rag.types import OWN, UNRANKED, UNSCORED, Candidate, best_first, check_query, with_scores


def rerank(query: str, candidates: Iterable[Candidate], reranker: Reranker) -> list[Candidate]:
    """Score candidates with a reranker and return new ones, best first.

    The former score is kept in `scores["retrieval"]`, or in `scores["reranked"]` if the candidates
    have been reranked before. Nothing else changes. The packaged reranker and the cascade score long texts
    by their sentences, see `score_texts`.
    query: not blank.
    A candidate whose score is not finite ranks last, see `with_scores`. From a `LevelledReranker` it has the
    packaged probability and the entry UNRANKED in its `scores`; that of others under OWN is the reranker's,
    as is that of an `AdaptedReranker`.
    Raises InputError if the reranker does not return one score per candidate, or none that is a number.
    """
    given = list(items_of("candidates", candidates, Candidate))
    check_query(query)
    renamed = [replace(c, score_scale=reranker.score_scale, scores=_with_former(c)) for c in given]
    if not isinstance(reranker, LevelledReranker | AdaptedReranker):
        return best_first(with_scores(renamed, usable_scores(reranker, query, given)))
    if not given:
        return []
    judged = reranker.judge(query, given)
    told = (replace(c, scores={**c.scores, **_own(s)}) for c, s in zip(renamed, judged.own, strict=True))
    return best_first(with_scores(told, judged.levels))


def _own(score: float) -> dict[str, float]:
    """What a candidate's scores tell of the reranker that gave the order."""
    return {UNRANKED: 1.0} if math.isnan(score) else {OWN: float(score)}


def _with_former(candidate: Candidate) -> dict[str, float]:
    if UNSCORED in candidate.scores:
        return dict(candidate.scores)
    key = "reranked" if "retrieval" in candidate.scores else "retrieval"
    return {**candidate.scores, key: candidate.score}
