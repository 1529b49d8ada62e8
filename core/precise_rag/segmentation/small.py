"""The `small` model at inference: numpy only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from precise_rag.errors import ModelError
from precise_rag.models.checkpoint import dequantized, load_checkpoint, quantized, save_checkpoint
from precise_rag.segmentation.boundaries import Reading
from precise_rag.segmentation.features import cohesion, convolve, shifted
from precise_rag.segmentation.word_pieces import WordPieces
from precise_rag.types import FloatArray, IntArray, SentenceTable
from precise_rag.vectors import unit_rows

_BLOCK = 4096
"""Sentences read at once: what bounds memory in a long document."""
_REACH = 16
"""Sentences on each side of a gap that can change its score."""


class SmallModel:
    """Static token vectors, cues from a sentence's first and last tokens, a window of sentences.

    Needs no encoder. A gap's logits depend on the 16 sentences before and after it alone.
    """

    encoder = None

    def __init__(self, config: dict[str, Any], tensors: dict[str, Any], vocabulary: WordPieces) -> None:
        self.config = config
        self.weights_sha256: str = config["weights_sha256"]
        self.vocabulary = vocabulary
        self._tensors = dequantized(tensors)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The model saved in `folder`; raises ModelError where a file is missing, damaged or foreign."""
        config, tensors = load_checkpoint(folder)
        data = (folder / "vocabulary.txt").read_bytes()
        if hashlib.sha256(data).hexdigest() != config.get("vocabulary_sha256"):
            raise ModelError(
                f"{folder / 'vocabulary.txt'} is not the one this model was trained with; install it again"
            )
        return cls(config, tensors, WordPieces(data.decode("utf-8").split("\n")))

    @staticmethod
    def save(
        folder: Path, config: dict[str, Any], tensors: dict[str, FloatArray], vocabulary: WordPieces
    ) -> None:
        """Write the model: tables as int8 with a scale for each row, the rest as float16."""
        data = "\n".join(vocabulary.pieces).encode("utf-8")
        config = {**config, "vocabulary_sha256": hashlib.sha256(data).hexdigest()}
        save_checkpoint(folder, config, quantized(tensors, ("vectors", "cues")))
        (folder / "vocabulary.txt").write_bytes(data)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """(n,) word pieces of each text by the model's own vocabulary."""
        return self.vocabulary.rows(texts)[2]

    def read(self, sentences: Sequence[str], table: SentenceTable | None = None) -> Reading:
        """Logits for each gap and a token count for each sentence. The table is not looked at."""
        n = len(sentences)
        logits = np.zeros((max(n - 1, 0), 2), dtype=np.float32)
        counts = np.zeros(n, dtype=np.int64)
        for start in range(0, n, _BLOCK):
            end = min(start + _BLOCK, n)
            first, last = max(start - _REACH, 0), min(end + _REACH + 1, n)
            ids, offsets, block_counts = self.vocabulary.rows(sentences[first:last])
            counts[first:last] = block_counts
            gaps = self._logits(ids, offsets)
            logits[start : min(end, n - 1)] = gaps[start - first : min(end, n - 1) - first]
        return Reading(logits, counts)

    def _logits(self, ids: IntArray, offsets: IntArray) -> FloatArray:
        t, c = self._tensors, self.config
        starts, ends = offsets[:-1], offsets[1:]
        pooled = unit_rows(np.add.reduceat(t["vectors"][ids] * t["weights"][ids], starts))
        first = starts[:, None] + np.arange(c["first_tokens"])
        last = ends[:, None] - 1 - np.arange(c["last_tokens"])
        cues = t["cues"][ids[np.concatenate([np.minimum(first, len(ids) - 1), np.maximum(last, 0)], axis=1)]]
        cues *= np.concatenate([first < ends[:, None], last >= starts[:, None]], axis=1)[..., None]
        length = np.log((ends - starts).astype(np.float32))[:, None] / 4
        x = np.concatenate(
            [pooled, cues.reshape(len(starts), -1), length, length > 0.6], axis=1, dtype=np.float32
        )
        rows = np.maximum(x @ t["inner.weight"].T + t["inner.bias"], 0)
        for layer in ("convolution1", "convolution2"):
            rows = rows + np.maximum(convolve(rows, t[f"{layer}.weight"]) + t[f"{layer}.bias"], 0)
        likeness = cohesion(pooled, c["windows"])
        gap = np.concatenate([rows, shifted(rows, -1), pooled * shifted(pooled, -1), likeness], axis=1)
        hidden = np.maximum(gap @ t["gap.weight"].T + t["gap.bias"], 0)
        logits: FloatArray = hidden @ t["out.weight"].T + t["out.bias"]
        return logits
