"""Words as numbers."""

import zlib

import numpy as np

from precise_rag.index.arrays.stop_words import load_stop_words
from precise_rag.index.arrays.words import split_words
from precise_rag.types import IntArray

MOST_NUMBERS = 2**29
"""The largest number of a word; the smallest is 1."""


def word_number(word: str) -> int:
    """The number of a word: a hash, so that no vocabulary has to be shared between writers."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % MOST_NUMBERS + 1


def word_numbers(text: str, stop_words: str | tuple[str, ...]) -> IntArray:
    """Numbers of the words of a text, as they come."""
    left_out = load_stop_words(stop_words)
    return np.array([word_number(w) for w in split_words(text) if w not in left_out], dtype=np.int64)
