"""Candidates that only repeat a better one.

Source: ChunkRAG, section 3, initial filtering (TF-IDF and cosine over 0.9). Differs: the better
scored of two is kept; a candidate that adds a number or a negation never counts as a repetition.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from precise_rag.errors import InputError
from precise_rag.filtering.tfidf import similar_earlier, tfidf_vectors
from precise_rag.protocols import Encoder
from precise_rag.stems import read_words
from precise_rag.types import Candidate, Decision, Selection, best_first

_NEGATIONS = frozenset({"no", "not", "never", "nor", "neither", "without", "cannot", "t"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancyFilter:
    """Drops each candidate that repeats a better-scored one.

    threshold: a cosine above it is a repetition. encoder: compare by its vectors those pairs whose
    TF-IDF cosine reaches `prefilter`; without one the TF-IDF cosine itself decides, so that only
    nearly the same words count. A piece of a document that lies inside a kept piece repeats it.
    """

    threshold: float = 0.9
    encoder: Encoder | None = None
    prefilter: float = 0.3

    def __post_init__(self) -> None:
        for name in ("threshold", "prefilter"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise InputError(f"{name} is {getattr(self, name)}; it must lie in (0, 1]")

    def filter(self, candidates: Iterable[Candidate]) -> Selection:
        """One decision per candidate, best first; the reason names the id that is repeated."""
        ranked = best_first(candidates)
        similar = self._similar_earlier([c.text for c in ranked])
        facts = [_facts(c.text) for c in ranked]
        kept: dict[int, None] = {}
        decisions: list[Decision] = []
        for row, candidate in enumerate(ranked):
            reason = _contained(candidate, [ranked[k] for k in kept])
            repeated = [
                (cosine, -other)
                for other, cosine in similar[row].items()
                if other in kept and cosine > self.threshold and facts[row] <= facts[other]
            ]
            if not reason and repeated:
                cosine, other = max(repeated)
                reason = f"repeats {ranked[-other].id} (cosine {cosine:.2f} > {self.threshold:.4g})"
            if not reason:
                kept[row] = None
            decisions.append(
                Decision(row + 1, candidate, not reason, reason or "repeats no better candidate")
            )
        return Selection(tuple(decisions))

    def _similar_earlier(self, texts: Sequence[str]) -> list[dict[int, float]]:
        """For each text the earlier ones that may be the same, with the cosine that decides."""
        by_words = self.threshold if self.encoder is None else self.prefilter
        similar = similar_earlier(tfidf_vectors(texts), by_words)
        if self.encoder is None:
            return similar
        rows = sorted({row for row, others in enumerate(similar) if others} | {o for s in similar for o in s})
        if not rows:
            return similar
        vector = dict(zip(rows, self.encoder.encode([texts[row] for row in rows]), strict=True))
        return [{o: float(vector[row] @ vector[o]) for o in others} for row, others in enumerate(similar)]


def _facts(text: str) -> frozenset[str]:
    """The numbers and negations of a text, which near-copies must not differ in."""
    return frozenset(s for s in read_words(text).stems if s in _NEGATIONS or any(map(str.isdigit, s)))


def _contained(candidate: Candidate, kept: Iterable[Candidate]) -> str:
    """Which kept piece of the same document holds this one, in words; empty if none does."""
    for better in kept:
        if (
            better.doc_id == candidate.doc_id
            and better.start <= candidate.start
            and candidate.end <= better.end
        ):
            return f"repeats {better.id}, which holds it"
    return ""
