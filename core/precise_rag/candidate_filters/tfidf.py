"""Find nearly equal texts by TF-IDF without comparing every pair."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, islice

from precise_rag.stems import read_words

Vector = dict[str, float]

MAX_COMPARED = 256
"""Texts that one text is compared with, at most."""


def tfidf_vectors(texts: Sequence[str]) -> list[Vector]:
    """Return one TF-IDF vector of unit length per text, its terms from the rarest to the most common.

    The weight of a term is its count times `1 + ln((1 + n) / (1 + df))`, over these n texts. A text
    without words has an empty vector.
    """
    counts = [Counter(read_words(text).stems) for text in texts]
    in_texts = Counter(term for count in counts for term in count)
    vectors: list[Vector] = []
    for count in counts:
        terms = sorted(count, key=lambda term: (in_texts[term], term))
        weights = [count[t] * (1.0 + math.log((1 + len(texts)) / (1 + in_texts[t]))) for t in terms]
        length = math.sqrt(sum(w * w for w in weights))
        vectors.append({t: w / length for t, w in zip(terms, weights, strict=True)})
    return vectors


class NearTexts:
    """Texts among which similar ones are looked for; it grows as texts are added.

    vectors: of all texts, from `tfidf_vectors`.
    at_least: the cosine from which on texts are similar, above 0.

    Only texts that share a rare term are compared. If the terms of a unit vector after some point have
    a norm below `at_least`, a similar text must share a term before that point. This is exact as long
    as no text has more than MAX_COMPARED others to be compared with; then the rarest terms decide which.
    Source: the prefix filter of Bayardo et al., Scaling up all pairs similarity search, WWW 2007.
    """

    def __init__(self, vectors: Sequence[Vector], at_least: float) -> None:
        self._vectors = vectors
        self._at_least = at_least
        self._rows_with: dict[str, list[int]] = {}

    def add(self, row: int) -> None:
        """Add a text, by its row in the vectors."""
        for term in _prefix(self._vectors[row], self._at_least):
            self._rows_with.setdefault(term, []).append(row)

    def find(self, row: int, may_match: Callable[[int], bool] = lambda other: True) -> dict[int, float]:
        """Return the cosines of the added texts that are similar to `row`, by their rows, ascending.

        may_match: whether a text counts; default: all do.
        """
        vector = self._vectors[row]
        terms = _prefix(vector, self._at_least)
        sharing = chain.from_iterable(self._rows_with.get(term, ()) for term in terms)
        met = dict.fromkeys(islice(sharing, 4 * MAX_COMPARED))
        compared = sorted(islice(filter(may_match, met), MAX_COMPARED))
        cosines = {other: _dot(vector, self._vectors[other]) for other in compared}
        return {other: cosine for other, cosine in cosines.items() if cosine >= self._at_least}


def similar_earlier(vectors: Sequence[Vector], at_least: float) -> list[dict[int, float]]:
    """For each row, the cosines of the earlier rows that are similar to it; see `NearTexts`."""
    near = NearTexts(vectors, at_least)
    similar: list[dict[int, float]] = []
    for row in range(len(vectors)):
        similar.append(near.find(row))
        near.add(row)
    return similar


def _prefix(vector: Vector, at_least: float) -> list[str]:
    """The first terms, up to where the norm of the rest is below `at_least`."""
    terms, weights = list(vector), list(vector.values())
    rest, least = 0.0, (at_least * (1.0 - 1e-9)) ** 2
    for n_first in range(len(terms) - 1, -1, -1):
        rest += weights[n_first] ** 2
        if rest >= least:
            return terms[: n_first + 1]
    return []


def _dot(left: Vector, right: Vector) -> float:
    if len(left) > len(right):
        left, right = right, left
    return sum(weight * right[term] for term, weight in left.items() if term in right)
