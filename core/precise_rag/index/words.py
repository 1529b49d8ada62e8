"""Words of a text in any script, as numbers, without stop words: words too common to search by."""

import re
import unicodedata
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from precise_rag._data import packaged_text
from precise_rag._extras import require
from precise_rag.checks import items_of, shown
from precise_rag.errors import InputError
from precise_rag.index.table import ragged
from precise_rag.numerals import NUMBER_WORDS
from precise_rag.stems import with_parted_words
from precise_rag.types import IntArray

_LISTS = re.compile(r"english|none|nltk:[a-z]+")
"""Names of lists of stop words; no file elsewhere can be named."""


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """Settings of indexes that compare words.

    stop_words: words to leave out; see `load_stop_words`.
    """

    stop_words: str | tuple[str, ...] = "english"

    def __post_init__(self) -> None:
        if not isinstance(self.stop_words, str):
            object.__setattr__(self, "stop_words", tuple(items_of("stop_words", self.stop_words, str)))
        elif not _LISTS.fullmatch(self.stop_words):
            raise InputError(
                "stop_words must be 'english', 'none', 'nltk:LANGUAGE' or a tuple of words, "
                f"got {shown(self.stop_words)}"
            )


@lru_cache(maxsize=16)
def load_stop_words(source: str | tuple[str, ...]) -> frozenset[str]:
    """Return a set of stop words; see `folded`.

    source: "english"; "none"; "nltk:german" for a list of the NLTK corpus; or the words themselves.
    Raises InputError if NLTK has no list of that name, and MissingExtra without NLTK.
    """
    if not isinstance(source, str):
        return frozenset(map(folded, source))
    if source == "english":
        return frozenset(packaged_text("index/stop_words.txt").split())
    if source == "none":
        return frozenset()
    language = source.removeprefix("nltk:")
    corpus = require("nltk.corpus", extra="nltk").stopwords
    try:
        return frozenset(map(folded, corpus.words(language)))
    except (LookupError, OSError) as error:
        raise InputError(
            f"NLTK has no stop words for {language!r}; run: python -m nltk.downloader stopwords"
        ) from error


_MOST_NUMBERS = 2**29
"""The largest number of a word; the smallest is 1."""
_WITH_MARKS = (*range(0x300, 0x3400), *range(0xA000, 0xAC00), *range(0xFB00, 0xFE30))
"""Code points with all combining marks of the basic plane: Chinese characters and Hangul have none."""
_MARKS = "".join(c for c in map(chr, _WITH_MARKS) if unicodedata.category(c) in ("Mn", "Mc"))
_UNSPACED = (
    r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u1000-\u103f\u1780-\u17d3"
    r"\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_WORD = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_][{_MARKS}]*)+(?:\+\+|#)?")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]")
_MOST_CODES = 20
_CODE = re.compile(r"[a-z\d]+(?:[-./:_][a-z\d]+)*")
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0640\u064b-\u065f\u0670]")
"""Accents, and the points of Hebrew and Arabic."""


def folded(text: str) -> str:
    """Return a text in small letters, without accents, each character in its usual form."""
    text = _ACCENTS.sub("", unicodedata.normalize("NFKD", with_parted_words(text).casefold()))
    return unicodedata.normalize("NFKC", text)


def split_words(text: str) -> list[str]:
    """Split a text into words to match by, case folded and without accents.

    One-letter words are kept; "C++" and "C#" are words. A run of characters of scripts without spaces between
    words, from Chinese to Thai, becomes overlapping pairs of them. "Three" is 3. See `with_parted_words`.
    """
    words: list[str] = []
    for word in _WORD.findall(folded(text)):
        is_run = len(word) > 1 and _UNSPACED_RUN.match(word)
        words += map("".join, pairwise(word)) if is_run else [NUMBER_WORDS.get(word, word)]
    return words


def word_number(word: str) -> int:
    """The number of a word: a hash, so that no vocabulary has to be shared between writers."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % _MOST_NUMBERS + 1


def word_numbers(text: str, stop_words: str | tuple[str, ...]) -> IntArray:
    """Numbers of the words of a text, as they come."""
    left_out = load_stop_words(stop_words)
    return np.array([word_number(w) for w in split_words(text) if w not in left_out], dtype=np.int64)


def code_numbers(text: str, stop_words: str | tuple[str, ...]) -> list[IntArray]:
    """Of each code of a text, such as E4266, TX-17 or 2021-05-03, (k,) the numbers of its words.

    The longest `_MOST_CODES` count: each costs a look at all rows of an index.
    """
    codes = {code for code in _CODE.findall(folded(text)) if len(code) > 1 and any(map(str.isdigit, code))}
    numbers = (np.unique(word_numbers(code, stop_words)) for code in sorted(codes, key=len)[-_MOST_CODES:])
    return [its for its in numbers if len(its)]


def word_columns(
    texts: Iterable[str], stop_words: str | tuple[str, ...], name: str = "words"
) -> dict[str, Any]:
    """Ragged column of the numbers of each text's words."""
    return ragged(name, (word_numbers(text, stop_words) for text in texts), np.int32)
