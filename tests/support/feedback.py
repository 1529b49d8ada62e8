"""A pipeline of which only the feedback loop is left: it answers from the candidates that it is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from precise_rag import Budget, FeedbackController, PreciseRAG
from precise_rag.types import Candidate, Selection


@dataclass(frozen=True)
class FirstK:
    """Selector that keeps as many of the best as feedback asks for, and `least` at least."""

    min_k: int
    least: int = 0

    def select(self, candidates: Sequence[Candidate]) -> Selection:
        return self.select_at(candidates, self.min_k)

    def select_at(self, candidates: Sequence[Candidate], min_k: int) -> Selection:
        n_kept = max(min_k, self.least)
        return Selection.of((c, rank <= n_kept, "rank") for rank, c in enumerate(candidates, start=1))


def answering(
    llm: Any,
    judge: Any = None,
    controller: FeedbackController | None = None,
    budget: Budget | None = None,
    *,
    least: int = 0,
    **options: Any,
) -> PreciseRAG:
    controller = controller or FeedbackController()
    return PreciseRAG(
        None,
        llm,
        judge=judge,
        feedback=controller,
        selector=FirstK(controller.min_k, least),
        budget=budget,
        **{"reranker": None, "redundancy": None, "evidence": None, "order": "score", **options},
    )
