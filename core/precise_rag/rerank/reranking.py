"""Reranking of candidates."""

from collections.abc import Iterable
from dataclasses import replace

from precise_rag.errors import InputError
from precise_rag.protocols import Reranker
from precise_rag.types import Candidate, best_first


def rerank(query: str, candidates: Iterable[Candidate], reranker: Reranker) -> list[Candidate]:
    """Score candidates with a reranker and return new ones, best first.

    The former score is kept in `scores["retrieval"]`, or in `scores["reranked"]` if the candidates
    have been reranked before. Nothing else changes.
    Raises InputError if the reranker does not return one score per candidate.
    """
    given = list(candidates)
    scores = reranker.score(query, given)
    if len(scores) != len(given):
        raise InputError(
            f"reranker {reranker.name!r} must return one score per candidate, in their order; "
            f"got {len(scores)} scores for {len(given)} candidates"
        )
    return best_first(
        replace(c, score=float(score), score_scale=reranker.score_scale, scores=_with_former(c))
        for c, score in zip(given, scores, strict=True)
    )


def _with_former(candidate: Candidate) -> dict[str, float]:
    key = "reranked" if "retrieval" in candidate.scores else "retrieval"
    return {**candidate.scores, key: candidate.score}
