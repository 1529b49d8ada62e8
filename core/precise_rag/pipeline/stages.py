"""The stages between search and selection, each a conversation about the candidates.

A new stage is a function that makes a Stage from its part, and an entry in `STAGES` and `METHODS`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from precise_rag.filtering import RelevanceFilter
from precise_rag.llm.session import Conversation, Session, Work
from precise_rag.prompts import Wording
from precise_rag.rerank import rerank
from precise_rag.sharing import share_places
from precise_rag.types import Candidate, Selection

Candidates = Sequence[Candidate]


class Stage(NamedTuple):
    """A stage.

    name, settings: for the trace.
    steps: decides on the candidates of a query; returns a Selection, or the candidates it keeps.
    """

    name: str
    settings: Mapping[str, Any]
    steps: Callable[[str, Candidates, Session, Wording], Conversation[Selection | list[Candidate]]]


def reranking(part: Any) -> Stage:
    """Give each candidate a better score."""
    return _working(lambda query, found: rerank(query, found, part), "rerank", reranker=part.name)


def limit(n_candidates: int) -> Stage:
    """Keep the best sentences of what was found, as many as a search for sentences returns."""

    def best(query: str, found: Candidates) -> Selection:
        return share_places(query, found, n_candidates).selection

    return _working(best, "sentences", n_candidates=n_candidates)


def redundancy(part: Any) -> Stage:
    """Drop candidates that repeat a better one."""
    settings = {name: getattr(part, name) for name in ("similarity_threshold",) if hasattr(part, name)}
    return _working(lambda query, found: part.filter(found), "redundancy", **settings)


def relevance(part: Any) -> Stage:
    """Drop candidates that are not relevant."""
    if not isinstance(part, RelevanceFilter):
        return _working(part.filter, "relevance", arun=getattr(part, "afilter", None))

    def steps(query: str, found: Candidates, session: Session, wording: Wording) -> Conversation[Selection]:
        return part.steps(query, found, session, wording.instructions.get("relevance"))

    return Stage("relevance", {}, steps)


def evidence(part: Any) -> Stage:
    """Grow candidates to the spans that are sent."""
    return _working(part.grow, "evidence")


STAGES: Mapping[str, Callable[[Any], Stage]] = {
    "reranker": reranking,
    "redundancy": redundancy,
    "relevance": relevance,
    "evidence": evidence,
}
"""The stages in their order, by the argument of `PreciseRAG` that gives their part."""

METHODS: Mapping[str, str] = {
    "rewriter": "queries(question)",
    "reranker": "score(query, candidates)",
    "redundancy": "filter(candidates)",
    "relevance": "filter(query, candidates)",
    "evidence": "grow(query, candidates)",
    "selector": "select(candidates)",
    "feedback": "next_step(rounds)",
}
"""What your own object must have, by the argument of `PreciseRAG`."""


def _working(
    run: Callable[[str, Candidates], Any],
    name: str,
    *,
    arun: Callable[[str, Candidates], Any] | None = None,
    **settings: Any,
) -> Stage:
    """A stage that asks no model of ours: a function of the query and the candidates."""

    def steps(query: str, found: Candidates, session: Session, wording: Wording) -> Conversation[Any]:
        return (yield Work(partial(run, query, found), arun and partial(arun, query, found)))

    return Stage(name, settings, steps)
