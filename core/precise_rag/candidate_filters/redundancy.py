"""Drop candidates that repeat a better one.

Source: ChunkRAG, section 3, initial filtering (TF-IDF and cosine over 0.9). Differs: of two similar
candidates the one with the better score is kept, and one that says something else is no repetition: a word
more, or the same below other titles.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from precise_rag.checks import check_number
from precise_rag.encoded import encode_documents
from precise_rag.encoders.geometry import cosine_like
from precise_rag.protocols import Encoder
from precise_rag.sharing import may_be_of_one_thing
from precise_rag.stems import read_words
from precise_rag.structure.marks import FIELD
from precise_rag.types import Candidate, Selection, Verdict, best_first

_NEGATIONS = frozenset({"no", "not", "never", "nor", "neither", "without", "cannot", "t"})
_SIGN = re.compile(r"[-−+<>≤≥±$€£¥#/:]\s?(?=\d)|(?<=\d)\s?[%°€$£¥]|(?<=\w)[+#]|[=!<>]=")
"""What tells apart texts of the same words: -5 and +5, $5 and 5 €, 1/2 and 1:2, C and C++."""
_REPLACED = 1
"""Words by which two texts differ that are alike but for a value: "within two weeks", "within four weeks"."""
_MOST = 100
"""Texts with one term that are compared with a later text, the first ones: costs grow linearly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancyFilter:
    """Drops each candidate that repeats one with a better score.

    similarity_threshold: two texts whose cosine is above it are repetitions, in (0, 1]. It is meant for
        all-MiniLM-L6-v2; see `cosine_like` for others.
    encoder: gives the vectors that are compared. Default: none; TF-IDF vectors are compared, and a repetition
        is a text whose words all stand in the other one, in their order. With an encoder it may say the same
        in other words; one that differs in a single word, a number or a negation says something else.
    prefilter: with an encoder, only pairs whose TF-IDF cosine reaches it are compared, in (0, 1].

    A candidate that lies inside a kept piece of the same document is a repetition, too.
    """

    similarity_threshold: float = 0.9
    encoder: Encoder | None = None
    prefilter: float = 0.3

    def __post_init__(self) -> None:
        for name in ("similarity_threshold", "prefilter"):
            check_number(name, getattr(self, name), above_zero=True, most=1)

    def filter(self, candidates: Iterable[Candidate]) -> Selection:
        """Return one decision per candidate, best first; the reason names the id that is repeated."""
        ranked = best_first(candidates)
        texts = [c.text for c in ranked]
        words = [tuple(read_words(text).stems) for text in texts]
        signs = [_SIGN.findall(text) for text in texts]
        threshold = self.similarity_threshold
        similar = similar_earlier(texts, threshold if self.encoder is None else self.prefilter)
        if self.encoder is not None and any(similar):
            threshold = cosine_like(threshold, self.encoder)
            similar = _by_vectors(similar, texts, self.encoder)
        similar = [{} if _is_field(text) else others for text, others in zip(texts, similar, strict=True)]
        kept: dict[str, list[Candidate]] = {}
        kept_rows: set[int] = set()
        verdicts: list[Verdict] = []
        for row, candidate in enumerate(ranked):
            pieces = kept.setdefault(candidate.doc_id, [])
            around = [one for one in pieces if one.start <= candidate.start and candidate.end <= one.end]
            reason = ""
            if around:
                longest = max(around, key=lambda piece: (piece.end, -piece.start))
                reason = f"repeats {longest.id}, which contains it"
            else:
                others = [
                    o
                    for o in similar[row]
                    if o in kept_rows
                    and may_be_of_one_thing(candidate, ranked[o])
                    and (len(words[row]) != len(words[o]) or signs[row] == signs[o])
                    and _says_the_same(words[row], words[o], self.encoder is not None)
                ]
                best = max(others, key=lambda o: (similar[row][o], -o), default=row)
                if best != row and similar[row][best] > threshold:
                    reason = f"repeats {ranked[best].id} (cosine {similar[row][best]:.2f} > {threshold:.4g})"
            if not reason:
                kept_rows.add(row)
                pieces.append(candidate)
            verdicts.append((candidate, not reason, reason or "repeats no better candidate"))
        return Selection.of(verdicts)


def _is_field(text: str) -> bool:
    """Whether what a text says depends on what stands around it: two equal ones say two things.

    It does if it has fewer than four words, or up to twelve with the name of a field, unless it is code.
    """
    n_words = len(read_words(text).stems)
    is_short = n_words < 4 or (n_words <= 12 and FIELD.match(text.lstrip()) is not None)
    return is_short and text.rstrip()[-1:] not in [*",;{}"]


def _by_vectors(
    similar: Sequence[Mapping[int, float]], texts: Sequence[str], encoder: Encoder
) -> list[dict[int, float]]:
    """The same similar texts of each row, with the cosines of an encoder's vectors."""
    rows = {row for row, others in enumerate(similar) if others}.union(*similar)
    chosen = list(dict.fromkeys(texts[row] for row in sorted(rows)))
    vectors = dict(zip(chosen, encode_documents(encoder, chosen), strict=True))
    return [
        {other: float(vectors[texts[row]] @ vectors[texts[other]]) for other in others}
        for row, others in enumerate(similar)
    ]


def _says_the_same(words: tuple[str, ...], others: tuple[str, ...], by_meaning: bool) -> bool:
    """Whether a text says nothing that a similar one does not say. by_meaning: perhaps in other words."""
    if f" {' '.join(words)} " in f" {' '.join(others)} ":
        return True
    new, missing = {*words} - {*others}, {*others} - {*words}
    is_replaced = len(new) <= _REPLACED and len(missing) <= _REPLACED
    negations = (new | missing) & _NEGATIONS
    return by_meaning and not is_replaced and not negations and not any(map(str.isdigit, "".join(new)))


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
