"""Find nearly equal texts by TF-IDF."""

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


class NearTexts:
    """Texts among which similar ones are looked for; it grows as texts are added.

    vectors: of all texts, from `tfidf_vectors`.
    at_least: the cosine from which on texts are similar, above 0.
    """

    def __init__(self, vectors: Sequence[Vector], at_least: float) -> None:
        self._vectors = vectors
        self._at_least = at_least
        self._with_term: dict[str, list[tuple[int, float]]] = {}

    def add(self, row: int) -> None:
        """Add a text, by its row in the vectors."""
        for term, weight in self._vectors[row].items():
            self._with_term.setdefault(term, []).append((row, weight))

    def find(self, row: int) -> dict[int, float]:
        """Return the cosines of the added texts that are similar to `row`, by their rows, ascending."""
        cosines: dict[int, float] = {}
        for term, weight in self._vectors[row].items():
            for other, of_other in self._with_term.get(term, ()):
                cosines[other] = cosines.get(other, 0.0) + weight * of_other
        return {other: cosine for other, cosine in sorted(cosines.items()) if cosine >= self._at_least}


def similar_earlier(vectors: Sequence[Vector], at_least: float) -> list[dict[int, float]]:
    """For each row, the cosines of the earlier rows that are similar to it; see `NearTexts`."""
    near = NearTexts(vectors, at_least)
    similar: list[dict[int, float]] = []
    for row in range(len(vectors)):
        similar.append(near.find(row))
        near.add(row)
    return similar
