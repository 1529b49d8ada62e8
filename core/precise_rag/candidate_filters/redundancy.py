"""Drop candidates that repeat a better one.

Source: ChunkRAG, section 3, initial filtering (TF-IDF and cosine over 0.9). Differs: of two similar
candidates the one with the better score is kept; a candidate with a number or a negation that the
other lacks is not a repetition.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from precise_rag.candidate_filters.tfidf import NearTexts, Vector, similar_earlier, tfidf_vectors
from precise_rag.checks import check_number
from precise_rag.encoded import encode_documents
from precise_rag.encoders.geometry import cosine_like
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder
from precise_rag.stems import read_words
from precise_rag.types import Candidate, FloatArray, Selection, best_first

_NEGATIONS = frozenset({"no", "not", "never", "nor", "neither", "without", "cannot", "t"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancyFilter:
    """Drops each candidate that repeats one with a better score.

    similarity_threshold: two texts whose cosine is above it are repetitions, in (0, 1]. It is meant for
        the packaged encoder; see `cosine_like` for others.
    encoder: gives the vectors that are compared. Default: none; TF-IDF vectors are compared, which
        finds only texts with nearly the same words.
    prefilter: with an encoder, only pairs whose TF-IDF cosine reaches it are compared, in (0, 1].

    A candidate that lies inside a kept piece of the same document is a repetition, too.
    """

    similarity_threshold: float = 0.9
    encoder: Encoder | None = None
    prefilter: float = 0.3

    def __post_init__(self) -> None:
        for name in ("similarity_threshold", "prefilter"):
            check_number(name, getattr(self, name))
            if not 0.0 < getattr(self, name) <= 1.0:
                raise InputError(f"{name} must be in (0, 1], got {getattr(self, name)}")

    def filter(self, candidates: Iterable[Candidate]) -> Selection:
        """Return one decision per candidate, best first; the reason names the id that is repeated."""
        ranked = best_first(candidates)
        texts = [c.text for c in ranked]
        facts = [_facts(text) for text in texts]
        words = tfidf_vectors(texts)
        near = NearTexts(words, self.similarity_threshold if self.encoder is None else self.prefilter)
        vectors = self._vectors(texts, words)
        threshold = self.similarity_threshold
        if vectors:
            assert self.encoder is not None
            threshold = cosine_like(threshold, self.encoder)
        kept: dict[str, list[Candidate]] = {}
        verdicts: list[tuple[Candidate, bool, str]] = []
        for row, candidate in enumerate(ranked):
            pieces = kept.setdefault(candidate.doc_id, [])
            reason = _inside(candidate, pieces)
            if not reason:
                cosines = {o: cosine for o, cosine in near.find(row).items() if facts[row] <= facts[o]}
                if self.encoder is not None:
                    cosines = _vector_cosines(texts[row], {o: texts[o] for o in cosines}, vectors)
                cosine, other = max(((c, -o) for o, c in cosines.items()), default=(0.0, 0))
                if cosine > threshold:
                    reason = f"repeats {ranked[-other].id} (cosine {cosine:.2f} > {threshold:.4g})"
            if not reason:
                near.add(row)
                pieces.append(candidate)
            verdicts.append((candidate, not reason, reason or "repeats no better candidate"))
        return Selection.of(verdicts)

    def _vectors(self, texts: Sequence[str], words: Sequence[Vector]) -> dict[str, FloatArray]:
        """The encoder's vectors of the texts that are similar to others; empty without an encoder."""
        if self.encoder is None:
            return {}
        counts = Counter(texts)
        first = {text: row for row, text in reversed(list(enumerate(texts)))}
        distinct = sorted(counts, key=first.__getitem__)
        similar = similar_earlier([words[first[text]] for text in distinct], self.prefilter)
        rows = {row for row, others in enumerate(similar) if others}.union(*similar)
        chosen = [text for row, text in enumerate(distinct) if row in rows or counts[text] > 1]
        return dict(zip(chosen, encode_documents(self.encoder, chosen), strict=True)) if chosen else {}


def _vector_cosines(
    text: str, others: Mapping[int, str], vectors: Mapping[str, FloatArray]
) -> dict[int, float]:
    """Cosines of `text` and other texts, by row; only of those that have vectors."""
    if text not in vectors:
        return {}
    return {row: float(vectors[text] @ vectors[other]) for row, other in others.items() if other in vectors}


def _inside(candidate: Candidate, kept: Sequence[Candidate]) -> str:
    """Why to drop `candidate` if a kept piece of its document contains it, else an empty string."""
    around = [piece for piece in kept if piece.start <= candidate.start and candidate.end <= piece.end]
    if not around:
        return ""
    return f"repeats {max(around, key=lambda piece: (piece.end, -piece.start)).id}, which contains it"


def _facts(text: str) -> frozenset[str]:
    """The numbers and negations of a text."""
    return frozenset(s for s in read_words(text).stems if s in _NEGATIONS or any(map(str.isdigit, s)))
