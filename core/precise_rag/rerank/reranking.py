"""Reranking of candidates."""

from collections.abc import Iterable
from dataclasses import replace

from precise_rag.checks import items_of
from precise_rag.errors import InputError
from precise_rag.protocols import Reranker
from precise_rag.rerank.long_texts import score_texts
from precise_rag.types import UNSCORED, Candidate, best_first, check_query, with_scores


def rerank(query: str, candidates: Iterable[Candidate], reranker: Reranker) -> list[Candidate]:
    """Score candidates with a reranker and return new ones, best first.

    The former score is kept in `scores["retrieval"]`, or in `scores["reranked"]` if the candidates
    have been reranked before. Nothing else changes. The packaged reranker and the cascade score long texts
    by their sentences, see `score_texts`.
    query: not blank.
    A candidate whose score is not finite ranks last, see `with_scores`.
    Raises InputError if the reranker does not return one score per candidate, or none that is a number.
    """
    given = list(items_of("candidates", candidates, Candidate))
    check_query(query)
    scores = score_texts(query, given, reranker)
    if len(scores) != len(given):
        raise InputError(
            f"reranker {reranker.name!r} must return one score per candidate, in their order; "
            f"got {len(scores)} scores for {len(given)} candidates"
        )
    renamed = (replace(c, score_scale=reranker.score_scale, scores=_with_former(c)) for c in given)
    ranked = best_first(with_scores(renamed, scores))
    if ranked and UNSCORED in ranked[0].scores:
        raise InputError(
            f"reranker {reranker.name!r} must return numbers, got {type(scores[0]).__name__} "
            f"{scores[0]!s:.50} as the first of {len(given)} scores, none of them finite"
        )
    return ranked


def _with_former(candidate: Candidate) -> dict[str, float]:
    if UNSCORED in candidate.scores:
        return dict(candidate.scores)
    key = "reranked" if "retrieval" in candidate.scores else "retrieval"
    return {**candidate.scores, key: candidate.score}
