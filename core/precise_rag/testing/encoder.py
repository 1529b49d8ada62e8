"""An encoder for tests."""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import unit_rows

_WORD = re.compile(r"\w+")


class HashEncoder:
    """An encoder for tests that compares texts by the words they share. It needs no model.

    A vector counts the words of a text, hashed into `dimension` values, and is scaled to unit length.
    Texts that share words have a positive cosine; other texts have a cosine near 0. A text without
    words has the first axis as its vector.

    dimension: length of a vector.
    calls: (attribute) all texts passed to `encode`, in order.

    >>> encoder = HashEncoder()
    >>> cat, kitten, rates = encoder.encode(["The cat sat.", "The cat ran.", "Interest rates rose."])
    >>> bool(cat @ kitten > cat @ rates)
    True
    >>> encoder.calls[0]
    'The cat sat.'
    """

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = dimension
        self.calls: list[str] = []

    @property
    def name(self) -> str:
        """Name that includes the dimension."""
        return f"hash-{self.dimension}"

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Encode n texts and record them in `calls`. Returns (n, dimension) float32 rows of unit length."""
        self.calls.extend(texts)
        return self.encode_queries(texts)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries as `encode` does, without recording them."""
        rows = np.zeros((len(queries), self.dimension), dtype=np.float32)
        for row, text in zip(rows, queries, strict=True):
            for word in _WORD.findall(text.lower()) or [""]:
                row[_bucket(word) % self.dimension if word else 0] += 1
        return unit_rows(rows)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Count the words of n texts. Returns (n,) int64."""
        return np.array([len(_WORD.findall(text)) for text in texts], dtype=np.int64)


@lru_cache(maxsize=100_000)
def _bucket(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
