"""Which script a text is written in, as far as it decides whether the cascade can read it."""

from collections.abc import Iterable

_LAST_LATIN = "\u024f"
"""Last letter of Latin Extended-B."""


def mostly_latin(texts: Iterable[str]) -> bool:
    """Check whether at least half of the letters of some texts are Latin; true without letters.

    Of other scripts, MiniLM's vocabulary holds single letters only, and a network trained on English
    reads little more from them than from noise.
    """
    n_letters = n_latin = 0
    for text in texts:
        found = sum(map(str.isalpha, text))
        n_letters += found
        n_latin += found if text.isascii() else sum(c.isalpha() and c <= _LAST_LATIN for c in text)
    return 2 * n_latin >= n_letters
