"""Words of a text in any script, and a vocabulary that numbers them."""

import re
import sys
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from itertools import compress, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.stop_words import load_stop_words
from precise_rag.types import IntArray

MOST_NUMBERS = 2**29
"""The largest number of a word; the smallest is 1."""
WORD_COLUMNS = ("words.values", "heading_words.values")
"""Columns that hold numbers of words."""

_WITH_MARKS = (*range(0x300, 0x3400), *range(0xA000, 0xAC00), *range(0xFB00, 0xFE30))
"""Code points with all combining marks of the basic plane: Chinese characters and Hangul have none."""
_MARKS = "".join(c for c in map(chr, _WITH_MARKS) if unicodedata.category(c) in ("Mn", "Mc"))
_CJK = r"\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]+|(?:(?![{_CJK}])[^\W_][{_MARKS}]*)+(?:\+\+|#)?")
_CJK_RUN = re.compile(f"[{_CJK}]")
_ACCENTS = re.compile("[\u0300-\u036f]")


def split_words(text: str) -> list[str]:
    """Split a text into words to match by, case folded and without accents.

    One-letter words are kept; "C++" and "C#" are words. A run of Chinese characters or kana, which
    have no spaces between words, becomes overlapping pairs of characters.
    """
    text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    words: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        if len(word) > 1 and _CJK_RUN.match(word):
            words.extend(a + b for a, b in pairwise(word))
        else:
            words.append(word)
    return words


def word_number(word: str) -> int:
    """The number of a word: a hash, so that no vocabulary has to be shared between writers."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % MOST_NUMBERS + 1


def word_numbers(text: str, stop_words: str | tuple[str, ...]) -> IntArray:
    """Numbers of the words of a text, as they come."""
    left_out = load_stop_words(stop_words)
    return np.array([word_number(w) for w in split_words(text) if w not in left_out], dtype=np.int64)


class Vocabulary:
    """Numbers for words, in the order in which they were first seen; it grows as texts are added.

    stop_words: words to leave out.
    known: words of an earlier vocabulary, in order; default: none.
    """

    def __init__(self, stop_words: frozenset[str], known: Iterable[str] = ()) -> None:
        self._stop_words = stop_words
        self._number = {word: i for i, word in enumerate(known)}

    def __len__(self) -> int:
        return len(self._number)

    def without_words(self) -> "Vocabulary":
        """Return an empty vocabulary with the same stop words."""
        return Vocabulary(self._stop_words)

    def learned(self, words: Iterable[str]) -> list[int]:
        """The number of each word; new words get the next numbers."""
        number = self._number
        return [number.setdefault(sys.intern(word), len(number)) for word in words]

    def words(self) -> list[str]:
        """All words in the order of their numbers."""
        return list(self._number)

    def columns(self, texts: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Ragged column "words": the numbers of each text's words; new words get the next numbers."""
        rows = [np.array(self.learned(self._kept(text)), dtype=np.int32) for text in texts]
        return {
            "words.values": np.concatenate([np.zeros(0, dtype=np.int32), *rows]),
            "words.lengths": np.array([len(row) for row in rows], dtype=np.int32),
        }

    def numbers(self, words: Iterable[str]) -> IntArray:
        """The number of each word; -1 for one that is not known."""
        return np.array([self._number.get(word, -1) for word in words], dtype=np.int64)

    def distinct(self, query: str) -> list[str]:
        """The distinct words of a query, without stop words."""
        return list(dict.fromkeys(self._kept(query)))

    def _kept(self, text: str) -> list[str]:
        return [word for word in split_words(text) if word not in self._stop_words]


def joined_words(
    vocabularies: Sequence[Vocabulary], columns: Sequence[Columns]
) -> tuple[Vocabulary, list[Columns]]:
    """Return one vocabulary of the words that rows hold, and the columns of words with its numbers.

    vocabularies: of the same stop words. columns: of each vocabulary's rows.
    """
    joined = vocabularies[0].without_words()
    renumbered: list[Columns] = []
    for vocabulary, given in zip(vocabularies, columns, strict=True):
        texts = {name: given[name] for name in WORD_COLUMNS if name in given}
        used = np.zeros(len(vocabulary), dtype=np.bool_)
        for values in texts.values():
            used[values] = True
        numbers = np.zeros(len(vocabulary), dtype=np.int32)
        numbers[used] = joined.learned(compress(vocabulary.words(), used.tolist()))
        renumbered.append({name: numbers[values] for name, values in texts.items()})
    return joined, renumbered
