"""A reranker that scores as it is told."""

from collections.abc import Callable, Sequence

import numpy as np

from precise_rag.types import Candidate, FloatArray, ScoreScale


class Scored:
    """Gives each text the score that a function has for it, and keeps what it read."""

    name, is_calibrated, reads_around = "scored", True, True

    def __init__(self, score_of: Callable[[str], float], score_scale: ScoreScale = "probability") -> None:
        self.score_of, self.score_scale = score_of, score_scale
        self.read: list[Candidate] = []

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        self.read = list(candidates)
        return np.array([self.score_of(c.text) for c in candidates], dtype=np.float32)
