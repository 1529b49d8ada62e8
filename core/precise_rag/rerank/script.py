"""Which script a text is written in, as far as it decides whether the cascade can read it."""

from collections import Counter
from unicodedata import name

from precise_rag.stems import UNSPACED, WORD

_LAST_LATIN = "\u024f"
"""Last letter of Latin Extended-B."""

_JAPANESE = "Japanese"
_NAMES = {"CJK": "Chinese characters", "HIRAGANA": _JAPANESE, "KATAKANA": _JAPANESE}
"""Names of scripts, where the first word of a letter's name in Unicode is not one."""


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
