"""A pipeline of which only the feedback loop is left: it answers from the candidates that it is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from precise_rag import Budget, FeedbackController, PreciseRAG
from precise_rag.types import Candidate, Selection
from support.velm import PLAIN


@dataclass(frozen=True)
class FirstK:
    """Selector that keeps the first `k`, as many more or fewer as feedback asks for, and `least` at least."""

    k: int
    least: int = 0

    def select(self, candidates: Sequence[Candidate], *, query: str = "", step: int = 0) -> Selection:
        n_kept = max(self.k + step, self.least)
        return Selection.of((c, rank <= n_kept, "rank") for rank, c in enumerate(candidates, start=1))


def answering(
    llm: Any,
    judge: Any = None,
    controller: FeedbackController | None = None,
    budget: Budget | None = None,
    *,
    k: int = 7,
    least: int = 0,
    **options: Any,
) -> PreciseRAG:
    return PreciseRAG(
        None,
        llm,
        judge=judge,
        feedback=controller or FeedbackController(),
        budget=budget,
        **{**PLAIN, "selector": FirstK(k, least), **options},
    )
