"""Sentences that lean on the one before: they begin with a word for what was said, as "it" or "however"."""

import re

from precise_rag._data import packaged_toml
from precise_rag.structure.marks import TURN


def _first_words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"[\W_]{{0,5}}(?:{'|'.join(words)})(?![\w-])".replace(" ", r"\s+"), re.IGNORECASE)


_WORDS = packaged_toml("evidence/leaning.toml")
_TAKES_BACK = {language: _first_words(words["takes_back"]) for language, words in _WORDS.items()}
_LEANS = {language: _first_words(words["takes_back"], *words["leans"]) for language, words in _WORDS.items()}
_COMMON = {language: frozenset(words["common"].split()) for language, words in _WORDS.items()}
_READ = 4_000
"""Characters from which a language is told."""


def language_of(text: str) -> str:
    """Return the language of a text, of those in leaning.toml, by its commonest words; "en" without any."""
    words = text[:_READ].lower().split()
    counts = {language: sum(word in common for word in words) for language, common in _COMMON.items()}
    return max(counts, key=counts.__getitem__)


def leans(text: str, language: str = "en") -> bool:
    """Check whether a sentence begins with a word for what was said before: "it", "this", "however"."""
    return _LEANS[language].match(text) is not None and TURN.match(text) is None


def takes_back(text: str, language: str = "en") -> bool:
    """Check whether a sentence takes back some of what was said before: "However, members pay nothing."."""
    return _TAKES_BACK[language].match(text) is not None
