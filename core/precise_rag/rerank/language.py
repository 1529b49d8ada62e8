"""Which language and which script texts are in, as far as rerankers made for English differ by it."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal
from unicodedata import name

from precise_rag.stems import UNSPACED, WORD

Language = Literal["english", "latin", "spaced", "unspaced"]
"""English; another language in Latin letters; other scripts, with or without spaces between words."""

_ENGLISH = """
    the of and to that with from by are were has have had this which be it they their his its what who when
    where how does did there would can
"""
"""Common words of English."""

_OTHERS = """
    der die das und ist nicht ein eine einen von mit auf für dem des wird sich wie wer wo welche
    het een van dat zijn og det som på til av ikke och är att ett en er hva hvem hvor vad
    le la les et est dans du au pas sur une un que qui quel quelle el los las del y por con para es se qué
    cuál os um uma não da dos em ao qual quais il di che è per della gli și este în din
    ve bir bu için ile na się jest je az és egy oli ja yang dan dari
"""
"""Common words of other languages, rare in English: Germanic, Romance, then Turkish, Slavonic and others."""

_COMMON = frozenset(_ENGLISH.split()), frozenset(_OTHERS.split())

_LETTERS = re.compile(r"[^\W\d_]+")

_LAST_LATIN = "\u024f"
"""Last letter of Latin Extended-B."""

_JAPANESE = "Japanese"
_NAMES = {"CJK": "Chinese characters", "HIRAGANA": _JAPANESE, "KATAKANA": _JAPANESE}
"""Names of scripts, where the first word of a letter's name in Unicode is not one."""


def language_of(query: str, texts: Iterable[str]) -> Language:
    """Return the kind of language of most candidates.

    Each text has one vote, by its common words; those that have none of them, such as code and tables, have
    no vote. Without votes it is English. So a few texts that others put into a list change nothing.

    query: decides alone if it is mostly in another script than Latin.
    """
    if not mostly_latin(query):
        return "spaced" if mostly_spaced(query) else "unspaced"
    votes = sum(map(_vote, texts))
    return "latin" if votes < 0 else "english"


def _vote(text: str) -> int:
    """1 for English, -1 for another language, 0 if the words do not tell."""
    words = _LETTERS.findall(text.casefold())
    english, others = (sum(word in some for word in words) for some in _COMMON)
    return (english > others) - (others > english)


def mostly_latin(text: str) -> bool:
    """Check whether at least half of the words of a text are Latin; true without words.

    Each ideograph is a word, and numbers are none. Of other scripts, MiniLM's vocabulary holds single letters
    only, and a network trained on English reads little more from them than from noise.
    """
    if text.isascii():
        return True
    first = _first_letters(text)
    return 2 * sum(letter <= _LAST_LATIN for letter in first) >= len(first)


def mostly_spaced(text: str) -> bool:
    """Check whether at least half of the words of a text are in scripts that put spaces between them."""
    first = _first_letters(text)
    return 2 * sum(UNSPACED.match(letter) is None for letter in first) >= len(first)


def script_of(text: str) -> str:
    """Return the name of the script of most words that are not Latin, such as "Cyrillic"; "" without one."""
    counts = Counter(_name(letter) for letter in _first_letters(text) if letter > _LAST_LATIN)
    return _JAPANESE if _JAPANESE in counts else max(counts, key=lambda one: counts[one], default="")


def _first_letters(text: str) -> list[str]:
    return [word[0] for word in WORD.findall(text) if word[0].isalpha()]


def _name(letter: str) -> str:
    first = name(letter, "unknown letters").partition(" ")[0]
    return _NAMES.get(first, first.capitalize())
