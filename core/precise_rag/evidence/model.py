"""The growth model: how likely each sentence near a found one belongs to the evidence."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from precise_rag.checkpoints import Tensors, check_tensors, load_checkpoint, packaged_model
from precise_rag.errors import ModelError
from precise_rag.evidence.features import (
    FOUND_FEATURES,
    STEP_FEATURES,
    StretchFeatures,
    found_features,
    question_features,
    stretch_features,
)
from precise_rag.evidence.stretches import by_section
from precise_rag.segmentation import Segmenter
from precise_rag.structure import read_structure
from precise_rag.types import FloatArray, IntArray, Stretch
from precise_rag.vectors import probabilities

REACH = 8
"""Sentences on each side that a found sentence may grow to."""
_FOLDER = packaged_model("evidence")


class Growth(NamedTuple):
    """What the model says about the n sentences of a stretch.

    probability: (n,) that each belongs to the evidence.
    alone: (n,) the same from the sentence itself; 0 for one that was not found.
    source: (n,) row of the found sentence that it most probably came along with; -1 without one.
    """

    probability: FloatArray
    alone: FloatArray
    source: IntArray


class EvidenceModel:
    """Gives each sentence of a stretch the probability that it belongs to the evidence.

    A found sentence has a probability of its own, p: the reranker's, calibrated. A step from a sentence
    to the next or the previous one has a probability h, by logistic regression over the step's features,
    SAGE's boundary score among them. A sentence that is k steps from a found one belongs to the evidence
    because of it with probability p × h1 × … × hk. The best found sentence counts. Both reasons are taken
    as independent: 1 - (1 - alone) × (1 - because of the best).

    A heading begins a section, and no step leads from one section to another.

    So a neighbour is never more probable than the best found sentence near it. Sentences further than REACH
    away, and those of other documents, do not change its probability.

    folder: a saved model; default: the one in the package.
    Raises ModelError if the model is missing, damaged or made for other features.
    """

    def __init__(self, folder: str | Path = _FOLDER) -> None:
        config, tensors = load_checkpoint(folder)
        read = {"found_features": list(FOUND_FEATURES), "step_features": list(STEP_FEATURES)}
        if not read.items() <= config.items():
            raise ModelError(f"{folder} was trained on other features than this version has; train it again")
        check_tensors(folder, tensors, {"found": (len(FOUND_FEATURES),), "step": (len(STEP_FEATURES),)})
        self.weights_sha256: str = config["weights_sha256"]
        self._weights = tensors

    @classmethod
    def of(cls, weights: Tensors) -> Self:
        """Return a model with these weights, "found" and "step", one for each feature."""
        model = cls.__new__(cls)
        model.weights_sha256, model._weights = "", weights
        return model

    @staticmethod
    def load_model() -> None:
        """Load the boundary model now, not at the first stretch."""
        _boundaries()

    def grow(self, query: str, stretch: Stretch, probability: FloatArray, least: float = 0.0) -> Growth:
        """Return the probabilities of a stretch.

        probability: (n,) the reranker's, of each found sentence; NaN for the others.
        least: a section whose found sentences are all less probable, each alone, is not read: nothing in it
            can come along with so much.
        """
        is_found, odds = ~np.isnan(probability), found_features(probability) @ self._weights["found"]
        alone = np.where(is_found, probabilities(odds), 0.0).astype(np.float32)
        whole = Growth(alone.copy(), alone, np.full(len(alone), -1))
        if alone.max() < least:
            return whole
        question = question_features(query)
        same = same_probabilities([sentence.text for sentence in stretch.sentences])
        for first, section in by_section(stretch):
            end = first + len(section.sentences)
            if is_found[first:end].any() and alone[first:end].max() >= least:
                read = stretch_features(question, section, probability[first:end], same[first : end - 1])
                part = self._evaluated(read, alone[first:end])
                whole.probability[first:end] = part.probability
                whole.source[first:end] = np.where(part.source < 0, -1, part.source + first)
        ends_with_heading = read_structure(stretch.text).blocks[-1].kind == "heading"
        if ends_with_heading and whole.probability[-1] < whole.probability.max():
            whole.probability[-1] = 0.0  # what it stands above is not there
        return whole

    def _evaluated(self, read: StretchFeatures, alone: FloatArray) -> Growth:
        n, rows = len(alone), np.arange(len(alone))
        steps = np.concatenate([np.arange(-REACH, 0), np.arange(1, REACH + 1)])
        sources = rows[:, None] + steps
        inside = (sources >= 0) & (sources < n)
        sources = np.clip(sources, 0, n - 1)
        steps_of = (probabilities(part @ self._weights["step"]) for part in (read.forward, read.backward))
        forward, backward = (np.append(0.0, np.cumsum(np.log(probable))) for probable in steps_of)
        path = np.where(steps < 0, forward[:, None] - forward[sources], backward[sources] - backward[:, None])
        reached = np.where(inside, alone[sources] * np.exp(path), 0.0)
        best = reached.argmax(axis=1)
        because = reached[rows, best]
        probability = 1.0 - (1.0 - alone) * (1.0 - because)
        return Growth(probability.astype(np.float32), alone, np.where(because > 0.0, sources[rows, best], -1))


def same_probabilities(texts: Sequence[str]) -> FloatArray:
    """Return the (n - 1,) probabilities that neighbouring sentences belong together, by `small`."""
    return probabilities(-_boundaries().model.predict(texts)[:, 0]).astype(np.float32)


@cache
def evidence_model() -> EvidenceModel:
    """Return the packaged growth model, loaded once."""
    return EvidenceModel()


@cache
def _boundaries() -> Segmenter:
    return Segmenter.from_pretrained("small")
