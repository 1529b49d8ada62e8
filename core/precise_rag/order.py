"""The one order of candidates that selectors, filters and rerankers share."""

from collections.abc import Iterable

from precise_rag.types import Candidate


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates by falling score; ties by document and place, so that input order never matters."""
    return sorted(candidates, key=lambda c: (-c.score, c.doc_id, c.start, c.end))
