"""The `sage` model at inference: sentence vectors from an encoder, and a head in numpy."""

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from precise_rag.checkpoints import (
    check_config,
    check_tensors,
    load_checkpoint,
    packaged_model,
    save_checkpoint,
)
from precise_rag.encoded import count_tokens, encode_documents
from precise_rag.encoders import load_encoder
from precise_rag.errors import InputError, ModelError
from precise_rag.protocols import Encoder
from precise_rag.segmentation.features import (
    SIZES,
    closeness,
    cohesion,
    context_shapes,
    curve,
    curve_shapes,
    gap_logits,
    gap_shapes,
    pair_features,
    shifted,
    with_context,
)
from precise_rag.segmentation.on_device import NetworkModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.types import FloatArray, IntArray, SentenceTable

_SETTINGS = {**SIZES, "encoder": str, "context": bool, "curve": int}


class SageModel(NetworkModel):
    """Boundary model on the sentence vectors of an encoder: features of pairs of vectors, and an MLP.

    With "context" in its config, the MLP also sees the sentences around the pair, and how alike the windows
    around the gaps near it are. With "words", the logits are blended with those of the packaged small model,
    because sentence vectors tell little of the first words of a sentence. The vectors of a SentenceTable are
    used if one is given.
    Source: SAGE, section IV-B. Differs: the context and the words.
    """

    def __init__(
        self,
        config: dict[str, Any],
        tensors: dict[str, Any],
        folder: Path,
        encoder: Any,
        device: str | None,
        small: SmallModel | None,
    ) -> None:
        super().__init__(config, {name: one.astype(np.float32) for name, one in tensors.items()}, device)
        self._own = folder / config["encoder"]
        self._source = encoder or (self._own if self._own.is_dir() else config["encoder"])
        self._small = small

    @classmethod
    def load(cls, folder: Path, *, encoder: Any = None, device: str | None = None) -> Self:
        """Load the model saved in `folder`.

        encoder: the encoder to use in place of the one named in the config. device: where it runs, such
        as "cpu"; default: CUDA if there is one.
        Raises ModelError if a file is missing, damaged or foreign.
        """
        config, tensors = load_checkpoint(folder, _SETTINGS)
        if encoder is None and config["encoder"].startswith("openai:"):
            raise ModelError(f"{folder} names an encoder that is paid for; pass encoder= to use one")
        check_tensors(folder, tensors, _shapes(config))
        small = None
        if "words" in config:
            check_config(folder, config, {"words": dict})
            check_config(folder, config["words"], {"model": str, "weights_sha256": str})
            name, wanted = config["words"]["model"], config["words"]["weights_sha256"]
            small = SmallModel.load(packaged_model(name), device=device)
            if small.weights_sha256 != wanted:
                raise ModelError(
                    f"the packaged {name} must have sha256 {wanted}, as when this model was trained, got "
                    f"{small.weights_sha256}; train the model again"
                )
        model = cls(config, tensors, folder, encoder, device, small)
        model._again = partial(cls.load, folder, encoder=encoder, device=device)
        return model

    @staticmethod
    def save(folder: Path, config: dict[str, Any], tensors: dict[str, FloatArray]) -> None:
        """Write the head as float16. A fine-tuned encoder is saved beside it, in `config["encoder"]`."""
        save_checkpoint(folder, config, {name: tensor.astype(np.float16) for name, tensor in tensors.items()})

    def once(self) -> Self:
        """Return this model: the encoder in its folder may be another one now. Encoders are shared."""
        return self

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder, loaded at its first use. Raises ModelError if its files have changed."""
        encoder = load_encoder(self._source, device=self.device)
        wanted = self.config.get("encoder_name")
        if self._source == self._own and wanted not in (None, encoder.name):
            raise ModelError(
                f"{self._own} must be the encoder that the head was trained with; install or train both again"
            )
        return encoder

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Return the (n,) token counts of texts by the encoder's tokenizer."""
        return count_tokens(self.encoder, texts)

    def predict(self, sentences: Sequence[str], table: SentenceTable | None = None) -> FloatArray:
        """Return the (n - 1, 2) logits of the gaps.

        table: the sentences' vectors; without it, or if another encoder made them, the sentences are encoded.
        Raises InputError if the vectors have other dimensions than the encoder's.
        """
        vectors = None if table is None else table.vectors_by(self.encoder.name)
        if vectors is None:
            vectors = encode_documents(self.encoder, [sentence.strip() for sentence in sentences])
        if vectors.shape[1] != self.config["dimension"]:
            raise InputError(
                f"the vectors must have {self.config['dimension']} dimensions, as those of "
                f"{self.config['encoder']}, got {vectors.shape[1]}; pass a table made with that encoder"
            )
        logits = self._gap_logits(len(sentences), lambda rows: [vectors[rows]])
        if self._small is not None:
            logits = blend(logits, self._small.predict(sentences), self.tensors["blend"])
        return logits

    def _logits(self, vectors: FloatArray) -> FloatArray:
        t, c = self.tensors, self.config
        columns = [pair_features(vectors, shifted(vectors, -1))]
        if c["context"]:
            rows = with_context(vectors, t)
            likeness = cohesion(vectors, c["windows"])
            around = np.concatenate([likeness, closeness(vectors, c["windows"])], axis=1)
            columns += [rows, shifted(rows, -1), likeness, curve(around, t)]
        return gap_logits(np.concatenate(columns, axis=1), t)


def _shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"blend": (3, 2)} if "words" in config else {}
    width = 4 * config["dimension"]
    if config["context"]:
        shapes |= context_shapes(config, config["dimension"]) | curve_shapes(config)
        width += 2 * config["hidden"] + len(config["windows"]) + config["curve"]
    return {**shapes, **gap_shapes(config, width)}


def blend(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the (n, 2) weighted sum of two models' logits. weights: (3, 2) for first, second and 1."""
    return np.asarray(weights[0] * first + weights[1] * second + weights[2], dtype=np.float32)
