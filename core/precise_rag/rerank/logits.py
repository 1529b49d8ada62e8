"""The log-odds of a reranker's probabilities, for selection on raw logits as in SAGE."""

from collections.abc import Sequence

from precise_rag._pickling import Portable
from precise_rag.protocols import Reranker
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.rerank.long_texts import score_texts
from precise_rag.types import Candidate, FloatArray, ScoreScale


class LogitReranker(Portable):
    """A reranker that gives the log-odds of another one's probabilities.

    SAGE compares raw logits of its reranker with their predecessors (Figs. 8 and 9). Of a calibrated
    reranker, 0 is an even chance.

    reranker: a reranker whose scores are probabilities.
    """

    score_scale: ScoreScale = "logit"

    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker
        self.name = reranker.name

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) logits, one per candidate, in their order."""
        return log_odds(score_texts(query, candidates, self.reranker))

    def load_model(self) -> None:
        """Load the model now, not at the first candidate."""
        getattr(self.reranker, "load_model", lambda: None)()
