"""Reranking of candidates."""

import math
from collections.abc import Iterable
from dataclasses import replace

from precise_rag.checks import items_of
from precise_rag.protocols import Neighbours, Reranker
from precise_rag.rerank.calibration import LevelledReranker, usable_scores
from precise_rag.rerank.candidate_texts import with_text_around
from precise_rag.types import OWN, UNRANKED, UNSCORED, Candidate, best_first, check_query, with_scores


def rerank(
    query: str, candidates: Iterable[Candidate], reranker: Reranker, around: Neighbours | None = None
) -> list[Candidate]:
    """Score candidates with a reranker and return new ones, best first.

    The former score is kept in `scores["retrieval"]`, or in `scores["reranked"]` if the candidates
    have been reranked before. Nothing else changes. The packaged reranker and the cascade score long texts
    by their sentences, see `score_texts`.
    query: not blank.
    around: knows the sentences around candidates. A reranker that reads them is told: the cascade, also where
        it gives the levels of another.
    A candidate whose score is not finite ranks last, see `with_scores`. From a `LevelledReranker` it has the
    probability of `levels` and the entry UNRANKED in its `scores`. Others have the reranker's score there
    under OWN.
    Raises InputError if the reranker does not return one score per candidate, or none that is a number.
    """
    given = list(items_of("candidates", candidates, Candidate))
    check_query(query)
    renamed = [replace(c, score_scale=reranker.score_scale, scores=_with_former(c)) for c in given]
    if around is not None and given and getattr(reranker, "reads_around", False):
        given = with_text_around(given, around)
    if not isinstance(reranker, LevelledReranker):
        return best_first(with_scores(renamed, usable_scores(reranker, query, given)))
    if not given:
        return []
    own, levels = reranker.judge(query, given)
    told = ({UNRANKED: 1.0} if math.isnan(score) else {OWN: float(score)} for score in own)
    scored = (replace(c, scores={**c.scores, **its_own}) for c, its_own in zip(renamed, told, strict=True))
    return best_first(with_scores(scored, levels))


def _with_former(candidate: Candidate) -> dict[str, float]:
    former = candidate.scores
    key = "reranked" if "retrieval" in former else "retrieval"
    return dict(former) if UNSCORED in former else {**former, key: candidate.score}
