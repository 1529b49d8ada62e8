"""No selection: every candidate is kept, until feedback asks for less."""

from collections.abc import Iterable
from dataclasses import dataclass

from precise_rag.types import Candidate, Selection, best_first


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAll:
    """Selector that keeps all candidates.

    min_k: where feedback starts to count; each step below it drops the worst candidate that is left.
    """

    min_k: int = 7

    def select(self, candidates: Iterable[Candidate]) -> Selection:
        """Keep all, best first."""
        return Selection.keep_all(best_first(candidates), "selection is off")

    def select_at(self, candidates: Iterable[Candidate], min_k: int) -> Selection:
        """Keep all, or as many fewer as `min_k` is below `self.min_k`, but at least one."""
        ranked = best_first(candidates)
        n_kept = max(1, len(ranked) - max(0, self.min_k - min_k))
        return Selection.of(
            (candidate, row < n_kept, "selection is off" if row < n_kept else "the judge asks for less")
            for row, candidate in enumerate(ranked)
        )
