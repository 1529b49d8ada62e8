"""Words of a text in any script, and a vocabulary that numbers them."""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.stop_words import load_stop_words

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
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        if len(word) > 1 and _CJK_RUN.match(word):
            found.extend(a + b for a, b in pairwise(word))
        else:
            found.append(word)
    return found


class Vocabulary:
    """Numbers for words, in the order in which they were first seen; it grows as texts are added.

    stop_words: words to leave out; see `load_stop_words`.
    known: words of an earlier vocabulary, in order; default: none.
    """

    def __init__(self, stop_words: str | tuple[str, ...], known: Iterable[str] = ()) -> None:
        self._stop_words = load_stop_words(stop_words)
        self._number = {word: i for i, word in enumerate(known)}

    def __len__(self) -> int:
        return len(self._number)

    def words(self) -> list[str]:
        """All words in the order of their numbers."""
        return list(self._number)

    def columns(self, texts: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Ragged column "words": the numbers of each text's words; new words get the next numbers."""
        number = self._number
        rows = [
            np.array(
                [number.setdefault(sys.intern(word), len(number)) for word in self._kept(text)],
                dtype=np.int32,
            )
            for text in texts
        ]
        return {
            "words.values": np.concatenate([np.zeros(0, dtype=np.int32), *rows]),
            "words.lengths": np.array([len(row) for row in rows], dtype=np.int32),
        }

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Context that forgets the words learned in it, if an exception leaves it."""
        known = len(self._number)
        try:
            yield
        except BaseException:
            while len(self._number) > known:
                self._number.popitem()
            raise

    def terms(self, query: str) -> npt.NDArray[np.int32]:
        """Numbers of the distinct known words of a query, ascending."""
        known = {self._number[word] for word in self._kept(query) if word in self._number}
        return np.array(sorted(known), dtype=np.int32)

    def _kept(self, text: str) -> list[str]:
        return [word for word in split_words(text) if word not in self._stop_words]
