"""The packaged reranker: calibrated probabilities from cheap features, without download or torch."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from precise_rag._processes import Loaded
from precise_rag.checkpoints import Tensors, check_config, check_tensors, load_checkpoint, packaged_model
from precise_rag.errors import ModelError
from precise_rag.rerank.candidate_texts import with_headings
from precise_rag.rerank.features import FEATURES, features, places
from precise_rag.rerank.logistic_regression import LogisticRegression
from precise_rag.stems import IdfTable
from precise_rag.types import Candidate, FloatArray, ScoreScale
from precise_rag.vectors import dots, linear

_FOLDER = packaged_model("reranker")
_CLIP = 4.0
"""Standard deviations at which a feature is clipped."""
KNOWN: Mapping[str, tuple[str, ...]] = {
    "meaning and words": ("dense", "bm25_share", "bm25_passage_share"),
    "meaning": ("dense",),
    "words": ("bm25_share",),
    "order": ("place",),
    "text": (),
}
"""The regressions, by what the retrieval tells of a candidate, and what they weigh beside the network's
logit: features, and its place in the list. The first of which a candidate has all is used; "order" if the
scores differ."""


class PackagedReranker(Loaded):
    """Probability that each candidate answers the query, from features and a small network.

    It uses the texts and, if the candidates have them, titles and headings (see `with_headings`), places in
    the documents, and the retrieval's scores (`Candidate.scores["dense"]`, `["bm25"]`, `["bm25_passage"]`)
    or else its order. A candidate is compared with those of its own document, and with the lower quartile of
    the list, and words that much of the list has count little: the best of other documents, which anybody may
    have written, have no part in its score.

    The probability is a logistic regression over the network's logit and the retrieval scores that are
    known. It was fitted to questions in many languages about documents that the network had not been trained
    on, so that the retrieval counts as much as new collections need. See docs/models.md.

    folder: a saved model; default: the one in the package.
    longest_text: tokens of the longest text to score whole; `rerank` splits longer ones into sentences.
    Raises ModelError if the model is missing, damaged or made for other features.
    """

    name = "packaged"
    score_scale: ScoreScale = "probability"
    longest_text = 256
    is_calibrated = True

    def __init__(self, folder: str | Path = _FOLDER) -> None:
        config, tensors = load_checkpoint(folder)
        if config.get("features") != list(FEATURES):
            raise ModelError(f"{folder} was trained on other features than this version has; train it again")
        check_config(folder, config, {"blend": dict})
        check_config(folder, config["blend"], dict.fromkeys(KNOWN, dict))
        check_tensors(folder, tensors, _shapes(tensors))
        self.weights_sha256: str = config["weights_sha256"]
        self._again = partial(type(self), folder)
        self._regressions = {name: LogisticRegression(config["blend"][name]) for name in KNOWN}
        self.idf_table: IdfTable = tensors.pop("idf")
        self._tensors = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities, one per candidate, in their order."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        columns = self.columns(query, candidates)
        is_ordered = len({candidate.score for candidate in candidates}) > 1
        scores = np.full(len(candidates), np.nan, dtype=np.float32)
        for name, known in KNOWN.items():
            has = np.isnan(scores) & (is_ordered or name != "order")
            for one in known:
                has &= ~np.isnan(columns[one])
            scores[has] = self._regressions[name]({key: column[has] for key, column in columns.items()})
        return scores

    def columns(self, query: str, candidates: Sequence[Candidate]) -> dict[str, FloatArray]:
        """Return what the regressions weigh, each (n,) for n > 0 candidates; NaN where it is not known."""
        rows = features(query, with_headings(query, candidates, self.idf_table), self.idf_table)
        columns = {"network": network_logits(self._tensors, rows), "place": places(candidates)}
        return columns | {name: rows[:, FEATURES.index(name)] for name in KNOWN["meaning and words"]}


def network_logits(t: Tensors, rows: FloatArray) -> FloatArray:
    """Return (n,) logits for (n, f) feature rows: a linear model plus a network with two hidden layers.

    t: "mean" and "deviation" (f,); "linear" (2f,) and "bias" (1,); "weight1" (h, 2f), "bias1" (h,),
    "weight2" (h, h), "bias2" (h,), "weight3" (h,), for f features and h hidden units.
    """
    x = network_inputs(rows, t["mean"], t["deviation"])
    hidden = _silu(linear(x, t["weight1"]) + t["bias1"])
    hidden = _silu(linear(hidden, t["weight2"]) + t["bias2"])
    return dots(x, t["linear"]) + dots(hidden, t["weight3"]) + t["bias"]


def network_inputs(rows: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the (…, 2f) inputs of the network for (…, f) features, NaN where unknown.

    Each feature enters twice: standardised and clipped (0 if unknown), and as a flag, 1 if it is unknown.
    """
    unknown = np.isnan(rows)
    known = np.where(unknown, 0.0, np.clip((rows - mean) / deviation, -_CLIP, _CLIP))
    return np.concatenate([known, unknown], axis=-1).astype(np.float32)


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


def _silu(x: FloatArray) -> FloatArray:
    return np.asarray(x / (1.0 + np.exp(-x)), dtype=np.float32)


@cache
def packaged_reranker() -> PackagedReranker:
    """Return the packaged reranker, which stays loaded."""
    return PackagedReranker().once()
