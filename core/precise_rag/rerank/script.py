"""Which script a text is written in, as far as it decides whether the cascade can read it."""

from precise_rag.stems import WORD

_LAST_LATIN = "\u024f"
"""Last letter of Latin Extended-B."""


def mostly_latin(text: str) -> bool:
    """Check whether at least half of the words of a text are Latin; true without words.

    Each ideograph is a word, and numbers are none. Of other scripts, MiniLM's vocabulary holds single letters
    only, and a network trained on English reads little more from them than from noise.
    """
    if text.isascii():
        return True
    first: list[str] = [word[0] for word in WORD.findall(text) if word[0].isalpha()]
    return 2 * sum(letter <= _LAST_LATIN for letter in first) >= len(first)
