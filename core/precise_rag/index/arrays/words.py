"""Text to words for BM25, in any script, and the growing vocabulary that numbers them."""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.stop_words import stop_words

_MARKS = "".join(
    re.escape(chr(c)) for c in range(0x300, 0xFE30) if unicodedata.category(chr(c)) in ("Mn", "Mc")
)
_CJK = r"\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]+|(?:(?![{_CJK}])[^\W_][{_MARKS}]*)+(?:\+\+|#)?")
_CJK_RUN = re.compile(f"[{_CJK}]")
_ACCENTS = re.compile("[\u0300-\u036f]")


def words(text: str) -> list[str]:
    """The words of `text` to match by: case folded, accents dropped, one-letter words kept.

    "C++" and "C#" are words. Runs of Chinese characters or kana, which know no spaces, become
    overlapping pairs.
    """
    text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        if len(word) > 1 and _CJK_RUN.match(word):
            found.extend(a + b for a, b in pairwise(word))
        else:
            found.append(word)
    return found


class Vocabulary:
    """Numbers for words, in the order they were first seen."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._number = {word: i for i, word in enumerate(known)}

    def __len__(self) -> int:
        return len(self._number)

    def __iter__(self) -> Iterator[str]:
        return iter(self._number)

    def learn(self, terms: Iterable[str]) -> npt.NDArray[np.int32]:
        """The numbers of `terms`; new ones get the next numbers."""
        number = self._number
        return np.array([number.setdefault(sys.intern(t), len(number)) for t in terms], dtype=np.int32)

    def numbers(self, terms: Iterable[str]) -> npt.NDArray[np.int32]:
        """The different numbers of those `terms` that are known, ascending."""
        return np.array(sorted({self._number[t] for t in terms if t in self._number}), dtype=np.int32)


class Lexicon:
    """Texts to numbers of their words without stop words, in a vocabulary that grows."""

    def __init__(self, stop_words_: str | tuple[str, ...], known: Iterable[str] = ()) -> None:
        self._stop_words = stop_words(stop_words_)
        self._vocabulary = Vocabulary(known)

    def __len__(self) -> int:
        return len(self._vocabulary)

    def words(self) -> list[str]:
        """All words in the order of their numbers."""
        return list(self._vocabulary)

    def columns(self, texts: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Ragged column "words": the numbers of each text's words."""
        numbers = [self._vocabulary.learn(self._telling(text)) for text in texts]
        return {
            "words.values": np.concatenate([np.zeros(0, dtype=np.int32), *numbers]),
            "words.lengths": np.array([len(n) for n in numbers], dtype=np.int32),
        }

    def terms(self, query: str) -> npt.NDArray[np.int32]:
        """The different known words of a query."""
        return self._vocabulary.numbers(self._telling(query))

    def _telling(self, text: str) -> list[str]:
        return [word for word in words(text) if word not in self._stop_words]
