"""The reranker in the box: calibrated probabilities from cheap features, no download, no torch."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from precise_rag.errors import ModelError
from precise_rag.models.checkpoint import load_checkpoint
from precise_rag.rerank.blend import Blend
from precise_rag.rerank.features import FEATURES, features
from precise_rag.rerank.network import FeatureNetwork
from precise_rag.types import Candidate, FloatArray, ScoreScale

_RETRIEVAL = ("prior", "reciprocal_rank")
"""Features that say how the retrieval itself scored and ranked a candidate within the list."""

PACKAGED_FOLDER = Path(__file__).parent.parent / "models" / "reranker"


class Judged(NamedTuple):
    """What the packaged reranker knows of each candidate: its network's logit, the retrieval's score from
    0 to 1 within the list and one over its rank (both 0 where there was no score), and the probability."""

    network: FloatArray
    prior: FloatArray
    reciprocal_rank: FloatArray
    probability: FloatArray


class PackagedReranker:
    """How likely each candidate is to hold what the query asks for.

    Reads the texts, and where present the retrieval scores (`Candidate.scores["dense"]`,
    `["bm25"]`) and the places in the documents; without them it does as well as it can, and the
    probabilities stay calibrated. Scores depend on the whole list given, not on its order.

    The probability is a logistic line of the network's logit and, where the candidates came with
    different scores, of the retrieval's own score and rank. That line was fitted to networks that had
    not seen the kind of collection they were asked about, so it trusts the retrieval as much as new
    collections deserve.
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
        self._plain, self._ranked = Blend(config["blend"]["plain"]), Blend(config["blend"]["ranked"])
        self._idf = tensors.pop("idf")
        self._network = FeatureNetwork(tensors)

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """(n,) probabilities, one per candidate, in the order given."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        return self.judge(query, candidates).probability

    def judge(self, query: str, candidates: Sequence[Candidate]) -> Judged:
        """The probabilities of n > 0 candidates, with what they are made of."""
        rows = features(query, candidates, self._idf)
        retrieval = rows[:, [FEATURES.index(name) for name in _RETRIEVAL]]
        blend = self._plain if np.isnan(retrieval).any() else self._ranked
        prior, reciprocal_rank = np.nan_to_num(retrieval).T
        network = self._network(rows)
        columns = {"network": network, "prior": prior, "reciprocal_rank": reciprocal_rank}
        return Judged(probability=blend(columns), **columns)


@cache
def packaged_reranker() -> PackagedReranker:
    """The reranker shipped with this package, read once."""
    return PackagedReranker()
