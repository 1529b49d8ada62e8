"""SAGE's model at inference: an encoder's sentence vectors, and a head in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from precise_rag.encoders import load_encoder
from precise_rag.errors import InputError, ModelError
from precise_rag.models.checkpoint import load_checkpoint, save_checkpoint
from precise_rag.models.packaged import packaged_model
from precise_rag.protocols import Encoder
from precise_rag.segmentation.blending import blend
from precise_rag.segmentation.boundaries import Reading
from precise_rag.segmentation.features import cohesion, convolve, pair_features, shifted
from precise_rag.segmentation.small import SmallModel
from precise_rag.types import FloatArray, IntArray, SentenceTable

_BLOCK = 4096
_REACH = 16


class SageModel:
    """An encoder, the features of neighbouring vectors, and an MLP (SAGE, section IV-B).

    With `context` in its config the MLP also sees the sentences around the pair. Vectors of a
    SentenceTable are used where they are given, so a frozen encoder's work is shared. With `words`
    the logits are a weighted sum with those of the packaged small model: sentence vectors blur
    what the first words of a sentence say.
    """

    def __init__(
        self,
        config: dict[str, Any],
        tensors: dict[str, Any],
        folder: Path,
        encoder: Any,
        device: str | None,
        words: SmallModel | None,
    ) -> None:
        self.config = config
        self.weights_sha256: str = config["weights_sha256"]
        self._tensors = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
        self._own = folder / config["encoder"]
        self._source = encoder or (self._own if self._own.is_dir() else config["encoder"])
        self._device = device
        self._words = words

    @classmethod
    def load(cls, folder: Path, *, encoder: Any = None, device: str | None = None) -> Self:
        """The model saved in `folder`; raises ModelError where a file is missing, damaged or foreign."""
        config, tensors = load_checkpoint(folder)
        return cls(config, tensors, folder, encoder, device, _words(config.get("words")))

    @staticmethod
    def save(folder: Path, config: dict[str, Any], tensors: dict[str, FloatArray]) -> None:
        """Write the head as float16. A fine-tuned encoder lies beside it, in `config["encoder"]`."""
        save_checkpoint(folder, config, {name: tensor.astype(np.float16) for name, tensor in tensors.items()})

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that the head reads; loaded on first use. ModelError if its files were changed."""
        encoder = load_encoder(self._source, device=self._device)
        wanted = self.config.get("encoder_name")
        if self._source == self._own and wanted not in (None, encoder.name):
            raise ModelError(
                f"{self._own} is not the encoder that this head was trained with; install or train them again"
            )
        return encoder

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """(n,) tokens by the encoder's tokenizer."""
        return self.encoder.count_tokens(texts)

    def read(self, sentences: Sequence[str], table: SentenceTable | None = None) -> Reading:
        """Logits for each gap and a token count for each sentence; with a table nothing is encoded."""
        if table is not None and table.vectors is not None:
            vectors, counts = table.vectors, table.n_tokens
        else:
            texts = [sentence.strip() for sentence in sentences]
            vectors, counts = self.encoder.encode(texts), self.encoder.count_tokens(texts)
        if vectors.shape[1] != self.config["dimension"]:
            raise InputError(
                f"the vectors have {vectors.shape[1]} dimensions, but this segmentation model reads "
                f"{self.config['dimension']} of {self.config['encoder']}"
            )
        n = len(sentences)
        logits = np.zeros((max(n - 1, 0), 2), dtype=np.float32)
        for start in range(0, n - 1, _BLOCK):
            end = min(start + _BLOCK, n - 1)
            first, last = max(start - _REACH, 0), min(end + _REACH + 1, n)
            logits[start:end] = self._logits(vectors[first:last])[start - first : end - first]
        if self._words is not None:
            logits = blend(logits, self._words.read(sentences).logits, self._tensors["blend"])
        return Reading(logits, np.maximum(counts, 1))

    def _logits(self, vectors: FloatArray) -> FloatArray:
        t, c = self._tensors, self.config
        columns = [pair_features(vectors, shifted(vectors, -1), c["features"])]
        if c["context"]:
            rows = np.maximum(vectors @ t["inner.weight"].T + t["inner.bias"], 0)
            for layer in ("convolution1", "convolution2"):
                rows = rows + np.maximum(convolve(rows, t[f"{layer}.weight"]) + t[f"{layer}.bias"], 0)
            columns += [rows, shifted(rows, -1), cohesion(vectors, c["windows"])]
        hidden = np.maximum(np.concatenate(columns, axis=1) @ t["gap.weight"].T + t["gap.bias"], 0)
        logits: FloatArray = hidden @ t["out.weight"].T + t["out.bias"]
        return logits


def _words(wanted: dict[str, str] | None) -> SmallModel | None:
    """The packaged small model that a head was weighed with; ModelError if it is another one today."""
    if wanted is None:
        return None
    model = SmallModel.load(packaged_model(wanted["model"]))
    if model.weights_sha256 != wanted["weights_sha256"]:
        raise ModelError(
            f"this model goes with a {wanted['model']} of sha256 {wanted['weights_sha256']}, but the "
            f"packaged one has {model.weights_sha256}; train it again"
        )
    return model
