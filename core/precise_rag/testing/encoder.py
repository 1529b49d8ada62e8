"""An encoder for tests: deterministic, instant, and with meaning enough to rank by."""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import unit_rows

_WORD = re.compile(r"\w+")


class HashEncoder:
    """A bag of words hashed into `dimension` counts, scaled to unit length.

    Texts that share words have a positive cosine, other texts one near 0; the same text always
    gives the same vector. A text without words gives the first axis.
    """

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = dimension
        self.calls: list[str] = []
        """Every document text that was encoded, in order: what a test counts."""

    @property
    def name(self) -> str:
        """Name and dimension: what the vectors depend on."""
        return f"hash-{self.dimension}"

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """(n, dimension) float32 rows of unit length."""
        self.calls.extend(texts)
        return self.encode_queries(texts)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """The same, not recorded in `calls`."""
        rows = np.zeros((len(queries), self.dimension), dtype=np.float32)
        for row, text in zip(rows, queries, strict=True):
            for word in _WORD.findall(text.lower()) or [""]:
                row[_bucket(word) % self.dimension if word else 0] += 1
        return unit_rows(rows)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """(n,) numbers of words."""
        return np.array([len(_WORD.findall(text)) for text in texts], dtype=np.int64)


@lru_cache(maxsize=100_000)
def _bucket(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
