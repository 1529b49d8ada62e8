"""Find nearly equal texts by TF-IDF."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from precise_rag.stems import read_words

_MOST = 100
"""Texts with one term that are compared with a later text, the first ones: costs grow linearly."""


def similar_earlier(texts: Sequence[str], at_least: float) -> list[dict[int, float]]:
    """Return, for each text, the TF-IDF cosines of the earlier texts that are similar to it, by their rows.

    at_least: the cosine from which on texts are similar, above 0.
    The weight of a term is its count times `1 + ln((1 + n) / (1 + df))`, over these n texts. A text
    without words is similar to none. Two similar texts share one of the rarest terms of each, as the weights
    of the others are too small together (prefix filtering: Bayardo et al., 2007, section 3).
    """
    with_term: defaultdict[str, list[int]] = defaultdict(list)
    similar: list[dict[int, float]] = []
    vectors = list(_vectors(texts))
    for row, vector in enumerate(vectors):
        others: set[int] = set()
        rest = 1.0
        for term, weight in vector.items():
            if rest < (at_least - 1e-6) ** 2:
                break
            others.update(with_term[term])
            if len(with_term[term]) < _MOST:
                with_term[term].append(row)
            rest -= weight * weight
        cosines = {
            other: sum(weight * vectors[other].get(term, 0.0) for term, weight in vector.items())
            for other in sorted(others)
        }
        similar.append({other: cosine for other, cosine in cosines.items() if cosine >= at_least})
    return similar


def _vectors(texts: Sequence[str]) -> Iterator[dict[str, float]]:
    """The weights of each text's terms, of unit length, from the rarest term to the most common."""
    counts = [Counter(read_words(text).stems) for text in texts]
    in_texts = Counter(term for count in counts for term in count)
    for count in counts:
        terms = sorted(count, key=lambda term: (in_texts[term], term))
        weights = [count[t] * (1.0 + math.log((1 + len(texts)) / (1 + in_texts[t]))) for t in terms]
        length = math.sqrt(sum(w * w for w in weights))
        yield {t: w / length for t, w in zip(terms, weights, strict=True)}
