"""The `small` model at inference: numpy on a CPU, torch on a GPU."""

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from precise_rag.checkpoints import (
    check_tensors,
    dequantized,
    load_checkpoint,
    quantized,
    read_checked,
    save_checkpoint,
)
from precise_rag.encoders.local import count_packaged_tokens
from precise_rag.errors import ModelError
from precise_rag.segmentation.features import (
    SIZES,
    cohesion,
    context_shapes,
    gap_logits,
    gap_shapes,
    shifted,
    with_context,
)
from precise_rag.segmentation.on_device import NetworkModel
from precise_rag.segmentation.word_pieces import WordPieces
from precise_rag.types import FloatArray, IntArray, SentenceTable
from precise_rag.vectors import unit_rows

_SETTINGS = {**SIZES, "cue_dimension": int, "first_tokens": int, "last_tokens": int}


class SmallModel(NetworkModel):
    """Boundary model on static token vectors, the first and last tokens of sentences, and their context.

    It needs no encoder. The logits of a gap depend only on the 16 sentences before and after it.
    device: where its network runs; default: CUDA if there is one.
    """

    encoder = None

    def __init__(
        self,
        config: dict[str, Any],
        tensors: dict[str, Any],
        word_pieces: WordPieces,
        device: str | None = None,
    ) -> None:
        super().__init__(config, dequantized(tensors), device)
        self.word_pieces = word_pieces
        self._weighted = self.tensors["vectors"] * self.tensors["weights"]

    @classmethod
    def load(cls, folder: Path, *, device: str | None = None) -> Self:
        """Load the model saved in `folder`. Raises ModelError if a file is missing, damaged or foreign."""
        config, tensors = load_checkpoint(folder, _SETTINGS)
        data = read_checked(folder, "vocabulary.txt", config.get("vocabulary_sha256"))
        try:
            word_pieces = WordPieces(data.decode("utf-8").split("\n"))
        except (UnicodeDecodeError, KeyError) as error:
            raise ModelError(f"{folder / 'vocabulary.txt'} is not a vocabulary: {error!r}") from error
        check_tensors(folder, tensors, _shapes(config, len(word_pieces.pieces)))
        model = cls(config, tensors, word_pieces, device)
        model._again = partial(cls.load, folder, device=device)
        return model.once()

    @staticmethod
    def save(
        folder: Path, config: dict[str, Any], tensors: dict[str, FloatArray], word_pieces: WordPieces
    ) -> None:
        """Write the model: tables as int8 with a scale for each row, other tensors as float16."""
        data = "\n".join(word_pieces.pieces).encode("utf-8")
        config = {**config, "vocabulary_sha256": hashlib.sha256(data).hexdigest()}
        save_checkpoint(folder, config, quantized(tensors, ("vectors", "cues")), {"vocabulary.txt": data})

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Return the (n,) token counts of texts by the default encoder's tokenizer."""
        return count_packaged_tokens(texts)

    def predict(self, sentences: Sequence[str], table: SentenceTable | None = None) -> FloatArray:
        """Return the (n - 1, 2) logits of the gaps. `table` is ignored."""
        return self._gap_logits(len(sentences), lambda rows: self.word_pieces.encode(sentences[rows])[:2])

    def _logits(self, ids: IntArray, offsets: IntArray) -> FloatArray:
        t, c = self.tensors, self.config
        starts, ends = offsets[:-1], offsets[1:]
        pooled = unit_rows(np.add.reduceat(self._weighted[ids], starts))
        first = starts[:, None] + np.arange(c["first_tokens"])
        last = ends[:, None] - 1 - np.arange(c["last_tokens"])
        cues = t["cues"][ids[np.concatenate([np.minimum(first, len(ids) - 1), np.maximum(last, 0)], axis=1)]]
        cues *= np.concatenate([first < ends[:, None], last >= starts[:, None]], axis=1)[..., None]
        length = np.log((ends - starts).astype(np.float32))[:, None] / 4
        columns = [pooled, cues.reshape(len(starts), -1), length, length > 0.6]
        rows = with_context(np.concatenate(columns, axis=1, dtype=np.float32), t)
        likeness = cohesion(pooled, c["windows"])
        gap = np.concatenate([rows, shifted(rows, -1), pooled * shifted(pooled, -1), likeness], axis=1)
        return gap_logits(gap, t)


def _shapes(config: dict[str, Any], n_pieces: int) -> dict[str, tuple[int, ...]]:
    dimension, cues, hidden = config["dimension"], config["cue_dimension"], config["hidden"]
    n_cues = config["first_tokens"] + config["last_tokens"]
    return {
        "vectors": (n_pieces, dimension),
        "weights": (n_pieces, 1),
        "cues": (n_pieces, cues),
        **context_shapes(config, dimension + n_cues * cues + 2),
        **gap_shapes(config, 2 * hidden + dimension + len(config["windows"])),
    }
