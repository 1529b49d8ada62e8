"""Words as the packaged reranker sees them: stems, how rare each is, and which are names."""

import re
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

IdfTable = npt.NDArray[np.uint8]
"""Rarity of a stem by the hash of its letters, in steps of 1 / IDF_STEPS; a power of two long."""

IDF_STEPS = 16

# One ideograph, kana or Thai letter is a word of its own: these scripts put no spaces between words.
_WORD = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
_ENDINGS = (
    ("ingly", ""),
    ("edly", ""),
    ("ing", ""),
    ("ies", "y"),
    ("ied", "y"),
    ("ed", ""),
    ("es", ""),
    ("ly", ""),
    ("s", ""),
    ("e", ""),
)


class Words(NamedTuple):
    """The words of a text in order: their stems, and whether each is written as a name or number."""

    stems: tuple[str, ...]
    marked: tuple[bool, ...]


def read_words(text: str) -> Words:
    """The words of `text`. A capital marks a name unless it opens a sentence."""
    stems: list[str] = []
    marked: list[bool] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        opens = not end or any(mark in ".!?\n" for mark in text[end : match.start()])
        first = word[0]
        stems.append(stem(word.casefold()))
        marked.append(first.isdigit() or (first.isupper() and not opens))
        end = match.end()
    return Words(tuple(stems), tuple(marked))


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """`word` without its commonest English ending; three letters at least are left."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


_SHAPING = (
    "a an and are be been being by can could describe did do does explain for from had has have how "
    "in is it of on or shall should that the their there these they this those to was were what when "
    "where which who whom whose why will with would"
)
QUESTION_WORDS = frozenset(map(stem, _SHAPING.split()))
"""Stems that shape a question and say nothing of its subject."""


def idf(word_stem: str, table: IdfTable) -> float:
    """How rare a stem is: minus the natural logarithm of the share of paragraphs that hold it."""
    return float(table[slot(word_stem, len(table))]) / IDF_STEPS


@lru_cache(maxsize=1 << 16)
def slot(word_stem: str, size: int) -> int:
    """Where the table of `size` entries keeps a stem."""
    return crc32(word_stem.encode("utf-8", "surrogatepass")) % size
