"""Exact match and F1 of answers against accepted answers, as in SAGE, section VII.

Both are in [0, 1] and higher is better. A question with several accepted answers counts the best one.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

_PUNCTUATION = frozenset(string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Return `text` in lower case without punctuation, articles and extra space, as SQuAD 1.1 does."""
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """Return 1.0 if the normalised answer equals a normalised accepted one, else 0.0."""
    return float(normalize_answer(answer) in map(normalize_answer, accepted))


def f1_match(answer: str, accepted: Sequence[str]) -> float:
    """Compute the F1 of the normalised words shared with the best accepted answer (SQuAD's F1).

    If either side has no words after normalisation, returns 1.0 if both have none, else 0.0.
    """
    words = normalize_answer(answer).split()
    return max(_f1(words, normalize_answer(other).split()) for other in accepted)


def _f1(answer: Sequence[str], other: Sequence[str]) -> float:
    if not answer or not other:
        return float(answer == other)
    return 2 * sum((Counter(answer) & Counter(other)).values()) / (len(answer) + len(other))
