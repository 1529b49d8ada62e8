"""No selection: every candidate is kept, until feedback asks for less."""

from collections.abc import Iterable
from dataclasses import dataclass

from precise_rag.types import Candidate, Selection, best_first


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Selector that keeps all candidates."""

    def select(self, candidates: Iterable[Candidate], *, query: str = "", step: int = 0) -> Selection:
        """Keep all, best first; with a negative `step` of feedback, so many fewer, but at least one."""
        ranked = best_first(candidates)
        n_kept = max(1, len(ranked) + min(0, step))
        return Selection.of(
            (candidate, row < n_kept, "selection is off" if row < n_kept else "the judge asks for less")
            for row, candidate in enumerate(ranked)
        )
