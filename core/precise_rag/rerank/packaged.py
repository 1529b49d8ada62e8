"""The packaged reranker: calibrated probabilities from cheap features, without download or torch."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from precise_rag.errors import ModelError
from precise_rag.models.checkpoint import Tensors, load_checkpoint
from precise_rag.models.checks import OBJECT, check_config, check_tensors, numbers
from precise_rag.models.packaged import packaged_model
from precise_rag.rerank.feature_network import FeatureNetwork
from precise_rag.rerank.features import FEATURES, features
from precise_rag.rerank.headings import with_headings
from precise_rag.rerank.logistic_regression import LogisticRegression
from precise_rag.stems import IdfTable
from precise_rag.types import Candidate, FloatArray, ScoreScale

_FOLDER = packaged_model("reranker")

_RETRIEVAL = ("prior", "reciprocal_rank")
"""Features with the retrieval's own score and rank of a candidate within the list."""

_BLENDS = {
    "plain": numbers(("network", "offset")),
    "ranked": numbers(("network", "offset", *_RETRIEVAL)),
}


class PackagedReranker:
    """Probability that each candidate holds what the query asks for, from features and a small network.

    It uses the texts and, if the candidates have them, titles and headings (see `with_headings`), places in
    the documents and retrieval scores (`Candidate.scores["dense"]`, `["bm25"]`). Scores depend on the whole
    list, not on its order.

    The probability is a logistic regression over the network's logit and, if the candidates' scores
    differ, the retrieval's score and rank. The regression was fitted with networks that had not been
    trained on the set they scored, so that the retrieval's order counts as much as new collections
    need. See docs/models/reranker.md.

    folder: a saved model; default: the one in the package.
    longest_text: tokens of the longest text to score whole; `rerank` splits longer ones into sentences.
    Raises ModelError if the model is missing, damaged or made for other features.
    """

    name = "packaged"
    score_scale: ScoreScale = "probability"
    longest_text = 256

    def __init__(self, folder: str | Path = _FOLDER) -> None:
        config, tensors = load_checkpoint(folder)
        if config.get("features") != list(FEATURES):
            raise ModelError(f"{folder} was trained on other features than this version has; train it again")
        check_config(folder, config, {"blend": OBJECT})
        check_config(folder, config["blend"], _BLENDS)
        check_tensors(folder, tensors, _shapes(tensors))
        self.weights_sha256: str = config["weights_sha256"]
        self._without_retrieval = LogisticRegression(config["blend"]["plain"])
        self._with_retrieval = LogisticRegression(config["blend"]["ranked"])
        self.idf_table: IdfTable = tensors.pop("idf")
        self._network = FeatureNetwork(tensors)

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities, one per candidate, in their order."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        rows = features(query, with_headings(query, candidates, self.idf_table), self.idf_table)
        columns = {"network": self._network(rows)}
        retrieval = {name: rows[:, FEATURES.index(name)] for name in _RETRIEVAL}
        if any(np.isnan(column).any() for column in retrieval.values()):
            return self._without_retrieval(columns)
        return self._with_retrieval(columns | retrieval)


def _shapes(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    n_inputs, hidden = 2 * len(FEATURES), len(tensors.get("bias1", ()))
    return {
        "mean": (len(FEATURES),),
        "deviation": (len(FEATURES),),
        "linear": (n_inputs,),
        "bias": (1,),
        "weight1": (hidden, n_inputs),
        "bias1": (hidden,),
        "weight2": (hidden, hidden),
        "bias2": (hidden,),
        "weight3": (hidden,),
        "idf": (max(len(tensors.get("idf", ())), 1),),
    }


@cache
def packaged_reranker() -> PackagedReranker:
    """Return the packaged reranker, loaded once."""
    return PackagedReranker()
