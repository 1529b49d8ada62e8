"""Candidates in the order of a reranker's scores."""

from collections.abc import Iterable
from dataclasses import replace

from precise_rag.errors import InputError
from precise_rag.protocols import Reranker
from precise_rag.types import Candidate, best_first


def rerank(query: str, candidates: Iterable[Candidate], reranker: Reranker) -> list[Candidate]:
    """New candidates, best first, scored by `reranker`.

    The score they came with is kept in `scores["retrieval"]`, or in `scores["reranked"]` where an
    earlier reranking has used that. Everything else stays as it was.
    Raises InputError if the reranker does not give one number per candidate.
    """
    given = list(candidates)
    scores = reranker.score(query, given)
    if len(scores) != len(given):
        raise InputError(
            f"reranker {reranker.name!r} gave {len(scores)} scores for {len(given)} candidates; "
            "it must give one each, in the order given"
        )
    return best_first(
        replace(c, score=float(score), score_scale=reranker.score_scale, scores=_with_former(c))
        for c, score in zip(given, scores, strict=True)
    )


def _with_former(candidate: Candidate) -> dict[str, float]:
    key = "reranked" if "retrieval" in candidate.scores else "retrieval"
    return {**candidate.scores, key: candidate.score}
