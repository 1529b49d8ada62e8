"""Which script a text is written in, as far as it decides whether the cascade can read it."""

_LAST_LATIN = "\u024f"
"""Last letter of Latin Extended-B."""


def mostly_latin(text: str) -> bool:
    """Check whether at least half of the letters of a text are Latin; true without letters.

    Of other scripts, MiniLM's vocabulary holds single letters only, and a network trained on English
    reads little more from them than from noise.
    """
    if text.isascii():
        return True
    n_letters = sum(map(str.isalpha, text))
    return 2 * sum(c.isalpha() and c <= _LAST_LATIN for c in text) >= n_letters
