"""What the packaged reranker knows of each candidate: cheap features of a query and a list.

A feature that cannot be known (no dense score, no neighbours, no names in the query) is NaN, never
a made-up number; the model has a learned branch for it.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from precise_rag.stems import QUESTION_WORDS, IdfTable, Words, idf, read_words
from precise_rag.types import Candidate, FloatArray

FEATURES = (
    "coverage",
    "window_coverage",
    "pair_coverage",
    "lexical",
    "lexical_to_best",
    "rarest_covered",
    "name_coverage",
    "log_words",
    "novelty",
    "answer_type",
    "letter_share",
    "sentence_end",
    "dense",
    "dense_to_best",
    "dense_z",
    "bm25_log",
    "bm25_to_best",
    "core_to_best",
    "bm25_passage_to_best",
    "prior",
    "reciprocal_rank",
    "near_lexical",
    "near_coverage",
    "near_dense",
    "document_share",
    "list_coverage",
    "list_dense",
    "query_terms",
    "query_rarity",
)
"""Names of the columns of `features`, in order."""

_WINDOW = 16
"""Words of a candidate that are looked at together."""

_PAIR = 3
"""How far apart two words may be and still count as next to each other."""

_NEAR = 600
"""Characters between two candidates of one document that are neighbours."""

_K1, _B = 1.2, 0.75

_NO_LETTER = re.compile(r"[\W\d_]+")
_SENTENCE_ENDS = tuple(".!?\"'”’)。！？")

_ASKS_NUMBER = re.compile(
    r"\b(when|how (many|much|old|long|far|often|large|tall)|what (year|date|time|percent\w*|age|number))\b"
)
_ASKS_PERSON = re.compile(r"\b(who|whom|whose)\b")

Columns = dict[str, FloatArray]


@dataclass(frozen=True)
class Query:
    """A query's terms in order with their rarity, its names, and the kind of answer it asks for."""

    weight: Mapping[str, float]
    names: frozenset[str]
    asks_number: bool
    asks_person: bool

    @classmethod
    def read(cls, text: str, table: IdfTable) -> "Query":
        """The query in `text`; words that only shape a question are left out if others remain."""
        words = read_words(text)
        terms = [s for s in words.stems if s not in QUESTION_WORDS] or words.stems
        marked = {s for s, is_name in zip(words.stems, words.marked, strict=True) if is_name}
        lower = text.lower()
        return cls(
            {term: idf(term, table) for term in terms},
            frozenset(marked & set(terms)),
            bool(_ASKS_NUMBER.search(lower)),
            bool(_ASKS_PERSON.search(lower)),
        )

    @cached_property
    def total(self) -> float:
        """Rarity of all terms together."""
        return sum(self.weight.values()) or 1.0

    @cached_property
    def rarest(self) -> float:
        """Rarity of the rarest term."""
        return max(self.weight.values(), default=0.0) or 1.0

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Terms that follow each other."""
        return list(pairwise(self.weight))

    def share(self, terms: Iterable[str]) -> float:
        """Rarity of `terms` as a share of the query's."""
        return sum(self.weight[term] for term in terms) / self.total


def features(query: str, candidates: Sequence[Candidate], table: IdfTable) -> FloatArray:
    """(n, len(FEATURES)) float32 values for n > 0 candidates, NaN where unknown.

    A row depends on its candidate, the query and the list as a set, not on the list's order.
    """
    asked = Query.read(query, table)
    texts = [read_words(c.text) for c in candidates]
    places = [_places(asked, words) for words in texts]
    columns = _lexical(asked, texts, places)
    columns |= _form(candidates)
    columns |= _retrieval(candidates)
    columns |= _neighbourhood(asked, candidates, places, columns)
    whole_list = {
        "list_coverage": columns["coverage"].max(),
        "list_dense": _best(columns["dense"]),
        "query_terms": len(asked.weight),
        "query_rarity": asked.total / max(len(asked.weight), 1),
    }
    columns |= {name: np.full(len(candidates), value) for name, value in whole_list.items()}
    return np.stack([columns[name] for name in FEATURES], axis=1).astype(np.float32)


Places = dict[str, list[int]]
"""Where in a text each query term stands, counted in words."""


def _places(query: Query, words: Words) -> Places:
    places: Places = {}
    for place, word in enumerate(words.stems):
        if word in query.weight:
            places.setdefault(word, []).append(place)
    return places


def _lexical(query: Query, texts: Sequence[Words], places: Sequence[Places]) -> Columns:
    """How much of the query the words of each candidate cover, and what they add to it."""
    lengths = np.array([max(len(words.stems), 1) for words in texts], dtype=np.float32)
    norms = _K1 * (1.0 - _B + _B * lengths / lengths.mean())
    bm25 = [
        sum(query.weight[t] * len(at) * (_K1 + 1.0) / (len(at) + norm) for t, at in found.items())
        / query.total
        for found, norm in zip(places, norms, strict=True)
    ]
    columns = {
        "coverage": [query.share(found) for found in places],
        "window_coverage": [_window_coverage(query, found) for found in places],
        "pair_coverage": [_pair_coverage(query, found) for found in places],
        "lexical": bm25,
        "rarest_covered": [
            max((query.weight[t] for t in found), default=0.0) / query.rarest for found in places
        ],
        "name_coverage": [_name_coverage(query, found) for found in places],
        "novelty": [
            len({s for s in words.stems if s not in query.weight}) / length
            for words, length in zip(texts, lengths, strict=True)
        ],
        "answer_type": [_answer_type(query, words) for words in texts],
    }
    out = {name: np.array(values, dtype=np.float32) for name, values in columns.items()}
    out["log_words"] = np.log(lengths)
    out["lexical_to_best"] = _to_best(out["lexical"])
    return out


def _window_coverage(query: Query, places: Places) -> float:
    """The largest share of the query within a few words of the text."""
    seen = sorted((place, term) for term, at in places.items() for place in at)
    best, first = 0.0, 0
    for last in range(len(seen)):
        while seen[last][0] - seen[first][0] >= _WINDOW:
            first += 1
        best = max(best, query.share({term for _, term in seen[first : last + 1]}))
    return best


def _pair_coverage(query: Query, places: Places) -> float:
    """The share of the query's pairs of terms that stand together in the text too."""
    rarity = {pair: query.weight[pair[0]] + query.weight[pair[1]] for pair in query.pairs}
    if not rarity:
        return math.nan
    together = sum(
        value
        for (a, b), value in rarity.items()
        if any(abs(i - j) <= _PAIR for i in places.get(a, ()) for j in places.get(b, ()))
    )
    return together / (sum(rarity.values()) or 1.0)


def _name_coverage(query: Query, places: Places) -> float:
    """The share of the query's names and numbers that the text has."""
    total = query.share(query.names)
    return query.share(query.names & places.keys()) / total if total else math.nan


def _answer_type(query: Query, words: Words) -> float:
    """Whether the text has a number (or a name) that the query, asking for one, has not."""
    if not (query.asks_number or query.asks_person):
        return math.nan
    return float(
        any(
            marked and word[0].isdigit() == query.asks_number and word not in query.weight
            for word, marked in zip(words.stems, words.marked, strict=True)
        )
    )


def _form(candidates: Sequence[Candidate]) -> Columns:
    """Whether each candidate looks like prose, and not like a heading, a table or markup."""
    letters = [len(_NO_LETTER.sub("", c.text)) / max(len(c.text), 1) for c in candidates]
    ends = [c.text.rstrip().endswith(_SENTENCE_ENDS) for c in candidates]
    return {
        "letter_share": np.array(letters, dtype=np.float32),
        "sentence_end": np.array(ends, dtype=np.float32),
    }


def _retrieval(candidates: Sequence[Candidate]) -> Columns:
    """The scores that retrieval gave, as they are and within the list."""
    dense, bm25, core, bm25_passage = (
        np.array([c.scores.get(name, math.nan) for c in candidates], dtype=np.float32)
        for name in ("dense", "bm25", "core", "bm25_passage")
    )
    score = np.array([c.score for c in candidates])
    spread = float(np.ptp(score))
    unknown = np.full(len(score), math.nan)
    return {
        "dense": dense,
        "dense_to_best": dense - _best(dense),
        "dense_z": _standard(dense),
        "bm25_log": np.log1p(np.maximum(bm25, 0.0)),
        "bm25_to_best": _to_best(bm25),
        "core_to_best": core - _best(core),
        "bm25_passage_to_best": _to_best(bm25_passage),
        "prior": (score - score.min()) / spread if spread > 0.0 else unknown,
        "reciprocal_rank": 1.0 / (1 + (score > score[:, None]).sum(axis=1)) if spread > 0.0 else unknown,
    }


def _neighbourhood(
    query: Query, candidates: Sequence[Candidate], places: Sequence[Places], columns: Columns
) -> Columns:
    """What stands near each candidate in its document, and how much of the list its document has."""
    unknown = np.full(len(candidates), math.nan)
    out = {name: unknown.copy() for name in ("near_lexical", "near_coverage", "near_dense", "document_share")}
    documents: dict[str, list[int]] = {}
    for row, candidate in enumerate(candidates):
        documents.setdefault(candidate.doc_id, []).append(row)
    for rows in documents.values():
        for row in rows:
            near = [
                other for other in rows if other != row and _gap(candidates[row], candidates[other]) < _NEAR
            ]
            if near:
                out["near_lexical"][row] = columns["lexical_to_best"][near].max()
                out["near_coverage"][row] = query.share(
                    set(places[row]).union(*(places[other] for other in near))
                )
                out["near_dense"][row] = columns["dense_to_best"][near].max()
    total = columns["lexical"].sum()
    if 1 < len(documents) < len(candidates) and total > 0.0:
        for rows in documents.values():
            out["document_share"][rows] = columns["lexical"][rows].sum() / total
    return out


def _gap(a: Candidate, b: Candidate) -> int:
    """Characters between two pieces of one document; negative where they overlap."""
    return max(a.start, b.start) - min(a.end, b.end)


def _best(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else math.nan


def _to_best(values: FloatArray) -> FloatArray:
    best = _best(values)
    return values / best if best > 0.0 else values


def _standard(values: FloatArray) -> FloatArray:
    known = values[~np.isnan(values)]
    if len(known) < 2 or known.std() < 1e-6:
        return np.full(len(values), math.nan, dtype=np.float32)
    standard: FloatArray = (values - known.mean()) / known.std()
    return standard
