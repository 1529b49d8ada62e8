"""The reranker in the box: calibrated probabilities from cheap features, no download, no torch."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from precise_rag.checkpoint import load_checkpoint
from precise_rag.errors import ModelError
from precise_rag.rerank.features import FEATURES, features
from precise_rag.rerank.network import FeatureNetwork
from precise_rag.types import Candidate, FloatArray, ScoreScale

_FUSED = [FEATURES.index("dense"), FEATURES.index("bm25_log")]

PACKAGED_FOLDER = Path(__file__).parent.parent / "models" / "reranker"


class PackagedReranker:
    """How likely each candidate is to hold what the query asks for.

    Reads the texts, and where present the retrieval scores (`Candidate.scores["dense"]`,
    `["bm25"]`) and the places in the documents; without them it does as well as it can, and the
    probabilities stay calibrated. Scores depend on the whole list given, not on its order.

    The probabilities are the network's. Where the list comes from a fused search (every candidate has
    both a dense and a BM25 score), which candidate gets which follows the logits plus `trust` times
    the search's own score within the list, since there the network alone orders worse than the
    search on collections unlike those it learned from.
    """

    name = "packaged"
    score_scale: ScoreScale = "probability"

    def __init__(self, folder: str | Path = PACKAGED_FOLDER) -> None:
        config, tensors = load_checkpoint(folder)
        if config.get("features") != list(FEATURES):
            raise ModelError(
                f"{folder} was trained on other features than this version computes; train it again"
            )
        self.weights_sha256: str = config["weights_sha256"]
        self._slope, self._offset = config["calibration"]
        self._trust = config["trust"]
        self._idf = tensors.pop("idf")
        self._network = FeatureNetwork(tensors)

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """(n,) probabilities, one per candidate, in the order given."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        rows = features(query, candidates, self._idf)
        logits = self._network(rows)
        probabilities: FloatArray = 1.0 / (1.0 + np.exp(-(self._slope * logits + self._offset)))
        if np.isnan(rows[:, _FUSED]).any():
            return probabilities
        prior = np.nan_to_num(rows[:, FEATURES.index("prior")])
        scores = np.empty_like(logits)
        scores[np.argsort(logits + self._trust * prior, kind="stable")] = np.sort(probabilities)
        return scores


@cache
def packaged_reranker() -> PackagedReranker:
    """The reranker shipped with this package, read once."""
    return PackagedReranker()
