"""The log-odds of a reranker's probabilities, for selection on raw logits as in SAGE."""

import math
from collections.abc import Sequence

from precise_rag._pickling import Portable
from precise_rag.protocols import Reranker
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.rerank.long_texts import score_texts
from precise_rag.types import Candidate, FloatArray, ScoreScale


class LogitReranker(Portable):
    """A reranker that gives the log-odds of another one's probabilities.

    SAGE compares raw logits of its reranker with their predecessors (Figs. 8 and 9). A network that learns
    from as many wrong pairs as right ones gives log-odds over chance; a calibrated probability counts that
    most candidates are wrong. Chance is taken to be one right among n candidates: a candidate of that
    probability has the logit 0, and a more probable one is above it.

    reranker: a reranker whose scores are probabilities.
    """

    score_scale: ScoreScale = "logit"

    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker
        self.name = reranker.name

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) logits over chance, one per candidate, in their order."""
        logits = log_odds(score_texts(query, candidates, self.reranker))
        return logits + math.log(max(len(candidates) - 1, 1))

    def load_model(self) -> None:
        """Load the model now, not at the first candidate."""
        getattr(self.reranker, "load_model", lambda: None)()
