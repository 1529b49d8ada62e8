"""The words of a text as the packaged models read them: stems, their rarity, names, kinds of question."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from precise_rag._data import packaged_toml
from precise_rag._memory import remembers
from precise_rag.numerals import NUMBER_WORDS, with_one_form

IdfTable = npt.NDArray[np.uint8]
"""Rarity of each stem, at the index `slot(stem, len(table))`, in units of 1 / IDF_STEPS."""
IDF_STEPS = 16
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
"""A word. Each ideograph, kana, and letter of Thai, Lao, Khmer or Burmese is one: they put no spaces between
words."""
_WORD_OF_NAME = r"[A-Z][a-z][\w'’]{0,30}"
_BETWEEN = "(?: (?:of|for|and|the|on|in|de|der|für|&)){0,2}[ -]"
LONG_NAME = re.compile(
    r"\b(?!(?:The|An|In|On|At|Of|For|What|Which|Who|When|Where|How|Did|Does|Do|Is|Are)\b)"
    rf"{_WORD_OF_NAME}(?:{_BETWEEN}{_WORD_OF_NAME}){{2,6}}"
)
"""A name of three words or more, such as World Health Organization, which may have initials."""
_ENDINGS = ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s", "e")


class Words(NamedTuple):
    """The words of a text, in order.

    stems: the stem of each word.
    marked: whether each word looks like a name or a number.
    """

    stems: tuple[str, ...]
    marked: tuple[bool, ...]


_SOFT_HYPHEN = re.compile(r"\u00ad(?:\r?\n[ \t]*)?")
_PARTED = re.compile(r"(?<![^\W\d_])([^\W\d_]+)[-\u2010][ \t]*\r?\n[ \t]*([^\W\d_]+)")


def initials(name: str) -> str:
    """Return the capital letters of a name: WHO."""
    return "".join(filter(str.isupper, name))


def with_parted_words(text: str) -> str:
    """Return a text for its words: of "ware-" and "house" on the next line it has "warehouse", too.

    Of a hundred such words in plain text sixty are one word and forty are two, as in "case-insensitive".
    Digits of all scripts are 0 to 9; "3 May 2021" has "20210503", and a name of several words its initials.
    """
    text = LONG_NAME.sub(lambda name: f"{name[0]} {initials(name[0])}", with_one_form(text))
    return _PARTED.sub(_and_joined, _SOFT_HYPHEN.sub("", text))


def _and_joined(parts: re.Match[str]) -> str:
    first, second = parts.groups()
    is_small = first[-1].islower() and second[0].islower()
    return f"{first} {second} {first}{second}" if is_small else parts[0]


_ENDS = frozenset(".!?\n")
"""After one of these, a sentence begins."""


@remembers()
def read_words(text: str) -> Words:
    """Read the words of `text`. A capitalised word looks like a name unless it begins a sentence."""
    stems: list[str] = []
    marked: list[bool] = []
    end = 0
    text = with_parted_words(text)
    for match in _WORD.finditer(text):
        word = match.group()
        stems.append(stem(word.casefold()))
        inside = word[0].isupper() and end > 0 and _ENDS.isdisjoint(text[end : match.start()])
        marked.append(inside or word[0].isdigit())
        end = match.end()
    return Words(tuple(stems), tuple(marked))


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Remove a common English ending from a lower-case word, leaving at least three letters.

    A word with a digit is its own stem: E420 and E4200 are two codes. That of "three" is 3.
    """
    word = NUMBER_WORDS.get(word, word)
    if any(map(str.isdigit, word)):
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + ("y" if ending in ("ies", "ied") else "")
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


_OF_QUESTIONS = packaged_toml("stems.toml")
QUESTION_WORDS = frozenset(map(stem, _OF_QUESTIONS["shaping"].split()))
"""Stems of words that form a question but do not name its subject."""
PRONOUNS = frozenset(map(stem, _OF_QUESTIONS["pronouns"].split()))
"""Stems of pronouns that are written with a capital, such as "I"."""


def idf(word_stem: str, table: IdfTable) -> float:
    """Return how rare a stem is: minus the natural logarithm of the share of paragraphs with it."""
    return float(table[slot(word_stem, len(table))]) / IDF_STEPS


@lru_cache(maxsize=1 << 16)
def slot(word_stem: str, size: int) -> int:
    """Return the index of a stem in a table of `size` entries."""
    return crc32(word_stem.encode("utf-8", "surrogatepass")) % size


QUESTION_KINDS: Mapping[str, str] = _OF_QUESTIONS["kinds"]
"""Kinds of question by their question words; a question may be of several kinds, or of none."""


def question_kinds(query: str) -> list[float]:
    """Return 1 or 0 for each kind in `QUESTION_KINDS`: whether the query is of that kind."""
    lower = query.lower()
    return [float(re.search(pattern, lower) is not None) for pattern in QUESTION_KINDS.values()]
