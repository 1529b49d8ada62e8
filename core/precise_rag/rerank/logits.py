"""Log-odds over chance of a reranker's probabilities, for selection on logits as in SAGE."""

import math
from collections.abc import Sequence

import numpy as np

from precise_rag.protocols import Reranker
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.rerank.long_texts import score_texts
from precise_rag.types import Candidate, FloatArray, ScoreScale


class LogitReranker:
    """A reranker that gives the log-odds of another one's probabilities, over those of chance.

    SAGE compares logits of its reranker with their predecessors (Figs. 8 and 9). They are positive for what
    has to do with the question, and a ratio of negative ones says nothing. Calibrated log-odds are negative
    for nearly all; over chance, 0 is a candidate as probable as any of the n if one of them is relevant.

    reranker: a reranker whose scores are probabilities.
    """

    score_scale: ScoreScale = "logit"

    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker
        self.name = reranker.name

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) logits, one per candidate, in their order."""
        chance = -math.log(max(len(candidates) - 1, 1))
        return log_odds(score_texts(query, candidates, self.reranker)) - np.float32(chance)

    def load_model(self) -> None:
        """Load the model now, not at the first candidate."""
        getattr(self.reranker, "load_model", lambda: None)()
