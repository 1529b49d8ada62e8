"""One encoder on several devices."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from precise_rag._processes import Shared, side_by_side
from precise_rag.encoders.local import LocalEncoder
from precise_rag.tokens import readable_texts
from precise_rag.types import FloatArray, IntArray

_FEW = 256
"""Texts for each device under which one device encodes them all."""


class SpreadEncoder(Shared):
    """An encoder whose texts are dealt to several devices in turn, each with the model on it.

    encoders: the same model on each device.
    Queries and few texts are encoded on the first device. The vectors are those of one device, but for
    rounding.
    """

    def __init__(self, encoders: Sequence[LocalEncoder]) -> None:
        self.encoders = tuple(encoders)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.encoders[0].name

    @property
    def source(self) -> str:
        """The name or folder for `load_encoder` that loads the model again."""
        return self.encoders[0].source

    @property
    def device(self) -> list[str | None]:
        """The devices."""
        return [encoder.device for encoder in self.encoders]

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        dimension: int = self._first.dimension
        return dimension

    @property
    def tokenizer(self) -> Any:
        """The model's `tokenizers.Tokenizer`, or None if it has none."""
        return self.encoders[0].tokenizer

    @property
    def _first(self) -> Any:
        return self.encoders[0]

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Count the tokens of n texts. Returns (n,) int64."""
        return self.encoders[0].count_tokens(texts)

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Encode n texts. Returns (n, d) float32 rows of unit length, in order."""
        texts = readable_texts(texts)
        if len(texts) < _FEW * len(self.encoders):
            first: FloatArray = self._first.encode(texts, show_progress=show_progress)
            return first
        longest = np.argsort([-len(text) for text in texts], kind="stable")
        dealt = [longest[place :: len(self.encoders)] for place in range(len(self.encoders))]
        calls = [
            partial(_encode, encoder, [texts[row] for row in share.tolist()], show_progress and place == 0)
            for place, (encoder, share) in enumerate(zip(self.encoders, dealt, strict=True))
        ]
        parts = side_by_side(*calls)
        rows = np.zeros((len(texts), parts[0].shape[1]), dtype=np.float32)
        for share, part in zip(dealt, parts, strict=True):
            rows[share] = part
        return rows

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries, with the model's query prompt if it has one."""
        vectors: FloatArray = self._first.encode_queries(queries)
        return vectors


def _encode(encoder: Any, texts: Sequence[str], show_progress: bool) -> FloatArray:
    rows: FloatArray = encoder.encode(texts, show_progress=show_progress)
    return rows
