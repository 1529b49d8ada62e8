"""Drop candidates that repeat a better one.

Source: ChunkRAG, section 3, initial filtering (TF-IDF and cosine over 0.9). Differs: of two similar
candidates the one with the better score is kept; a candidate with a number or a negation that the
other lacks is not a repetition.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from precise_rag.errors import InputError
from precise_rag.filtering.tfidf import similar_earlier, tfidf_vectors
from precise_rag.protocols import Encoder
from precise_rag.stems import read_words
from precise_rag.types import Candidate, Selection, best_first

_NEGATIONS = frozenset({"no", "not", "never", "nor", "neither", "without", "cannot", "t"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancyFilter:
    """Drops each candidate that repeats one with a better score.

    threshold: two texts whose cosine is above it are repetitions, in (0, 1].
    encoder: gives the vectors that are compared. Default: none; TF-IDF vectors are compared, which
        finds only texts with nearly the same words.
    prefilter: with an encoder, only pairs whose TF-IDF cosine reaches it are compared, in (0, 1].

    A candidate that lies inside a kept piece of the same document is a repetition, too.
    """

    threshold: float = 0.9
    encoder: Encoder | None = None
    prefilter: float = 0.3

    def __post_init__(self) -> None:
        for name in ("threshold", "prefilter"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise InputError(f"{name} must be in (0, 1], got {getattr(self, name)}")

    def filter(self, candidates: Iterable[Candidate]) -> Selection:
        """Return one decision per candidate, best first; the reason names the id that is repeated."""
        ranked = best_first(candidates)
        similar = self._similar_earlier([c.text for c in ranked])
        facts = [_facts(c.text) for c in ranked]
        kept: dict[int, None] = {}
        verdicts: list[tuple[Candidate, bool, str]] = []
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
            verdicts.append((candidate, not reason, reason or "repeats no better candidate"))
        return Selection.of(verdicts)

    def _similar_earlier(self, texts: Sequence[str]) -> list[dict[int, float]]:
        """For each text, the earlier ones that may be repeated, with the cosine that decides."""
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
    """The numbers and negations of a text."""
    return frozenset(s for s in read_words(text).stems if s in _NEGATIONS or any(map(str.isdigit, s)))


def _contained(candidate: Candidate, kept: Iterable[Candidate]) -> str:
    """The reason to drop `candidate` if a kept piece of its document contains it, else an empty string."""
    for better in kept:
        if (
            better.doc_id == candidate.doc_id
            and better.start <= candidate.start
            and candidate.end <= better.end
        ):
            return f"repeats {better.id}, which contains it"
    return ""
