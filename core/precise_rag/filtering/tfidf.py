"""Find nearly equal texts by TF-IDF without comparing every pair."""

import math
from collections import Counter
from collections.abc import Sequence

from precise_rag.stems import read_words

Vector = dict[str, float]


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


def similar_earlier(vectors: Sequence[Vector], at_least: float) -> list[dict[int, float]]:
    """For each row, find the earlier rows that are similar to it.

    vectors: from `tfidf_vectors`.
    at_least: the cosine from which on rows are similar, above 0.
    Returns, for each row, the cosines by earlier row.

    Exact, but only rows that share a rare term are compared: if the terms of a unit vector after some
    point have a norm below `at_least`, a similar row must share a term before that point.
    Source: the prefix filter of Bayardo et al., Scaling up all pairs similarity search, WWW 2007.
    """
    rows_with: dict[str, list[int]] = {}
    similar: list[dict[int, float]] = []
    for row, vector in enumerate(vectors):
        prefix = _prefix(vector, at_least)
        met = {other for term in prefix for other in rows_with.get(term, ())}
        cosines = {other: _dot(vector, vectors[other]) for other in sorted(met)}
        similar.append({other: cosine for other, cosine in cosines.items() if cosine >= at_least})
        for term in prefix:
            rows_with.setdefault(term, []).append(row)
    return similar


def _prefix(vector: Vector, at_least: float) -> list[str]:
    """The first terms, up to where the norm of the rest is below `at_least`."""
    terms = list(vector)
    rest = 0.0
    for n_first in range(len(terms) - 1, -1, -1):
        rest += vector[terms[n_first]] ** 2
        if math.sqrt(rest) >= at_least * (1.0 - 1e-9):
            return terms[: n_first + 1]
    return []


def _dot(left: Vector, right: Vector) -> float:
    if len(left) > len(right):
        left, right = right, left
    return sum(weight * right[term] for term, weight in left.items() if term in right)
