"""Features of the packaged reranker, from the query, the texts and the retrieval scores.

A feature that cannot be known (no dense score, no neighbours, no names in the query) is NaN; the
network has learned what that means.
"""

import math
import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from precise_rag.encoders.geometry import LEVELS
from precise_rag.rerank.query_terms import Positions, QueryTerms
from precise_rag.stems import QUESTION_KINDS, IdfTable, Words, question_kinds, read_words
from precise_rag.types import Candidate, FloatArray, IntArray

_COVERED = ("coverage", "window_coverage", "pair_coverage", "lexical", "rarest_covered")
_RETRIEVED = ("dense", "core", "bm25_share", "bm25_passage_share")
_COMPARED = ("coverage", "lexical", "here_coverage", "here_lexical", *_RETRIEVED)
_TO_OWN = ("lexical", "here_lexical", *_RETRIEVED)
FEATURES = (
    *_COVERED,
    *("name_coverage", "log_words"),
    *(f"here_{name}" for name in _COVERED),
    *("novelty", "answer_type", "letter_share", "sentence_end"),
    *_RETRIEVED,
    *(f"{name.removesuffix('_share')}_to_own" for name in _TO_OWN),
    *(f"{name.removesuffix('_share')}_over_usual" for name in _COMPARED),
    *("usual_coverage", "usual_dense", "near_lexical", "near_coverage", "near_dense"),
    *("query_terms", "query_rarity", "query_rarity_here", *QUESTION_KINDS),
)
"""Names of the features, in the order of their columns."""
_NEAR = 600
"""Two candidates of one document are neighbours if fewer characters lie between them."""
_LEFT_OUT = 2
"""Best other documents that do not count in a candidate's place."""
_FEWEST = 8
"""Known values that tell what is usual in a list; of fewer it is unknown."""
_K1, _B, _USUAL_WORDS = 1.2, 0.75, 30.0
"""Parameters of the BM25 of a text with the shipped idf table, and the words of a text of usual length."""
_NO_LETTER = re.compile(r"[\W\d_]+")
_SENTENCE_ENDS = tuple(".!?\"'”’)。！？")
FeatureColumns = dict[str, FloatArray]
"""(n,) values of each feature, by its name."""


def features(query: str, candidates: Sequence[Candidate], idf_table: IdfTable) -> FloatArray:
    """Return (n, len(FEATURES)) float32 features of n > 0 candidates, NaN where unknown.

    A row depends on its candidate, on the query, and on the candidates of the same document. From the rest of
    the list come its lower quartiles, and how many candidates have each word of the query ("here"). Texts
    that others put in front of a list move these by a few places only.
    """
    terms = QueryTerms.of(query, idf_table)
    texts = [read_words(c.text) for c in candidates]
    positions = [terms.positions(words) for words in texts]
    here = terms.among(positions) if len(candidates) >= _FEWEST else None
    columns = _covered(terms, texts, positions)
    columns |= {f"here_{name}": values for name, values in _covered(here, texts, positions).items()}
    columns |= _texts(terms, candidates, texts, positions)
    columns |= {name: retrieval_scores(candidates, name) for name in ("dense", "core")}
    for name in ("bm25", "bm25_passage"):  # relative to the rarity of the query, as they grow with it
        columns[f"{name}_share"] = retrieval_scores(candidates, name) / terms.total
    columns |= _standing(candidates, columns)
    columns |= _neighbourhood(terms, candidates, positions, columns)
    of_query = {
        "query_terms": len(terms.rarity),
        "query_rarity": terms.total / max(len(terms.rarity), 1),
        "query_rarity_here": here.total / terms.total if here else math.nan,
        **dict(zip(QUESTION_KINDS, question_kinds(query), strict=True)),
    }
    columns |= {name: np.full(len(candidates), value) for name, value in of_query.items()}
    return np.stack([columns[name] for name in FEATURES], axis=1).astype(np.float32)


def _covered(terms: QueryTerms | None, texts: Sequence[Words], found: Sequence[Positions]) -> FeatureColumns:
    """How much of the query the words of each candidate cover; unknown without terms."""
    if terms is None:
        return {name: np.full(len(texts), math.nan) for name in _COVERED}
    norms = _K1 * (1.0 - _B + _B * _lengths(texts) / _USUAL_WORDS)
    bm25 = [
        sum(terms.rarity[t] * len(at) * (_K1 + 1.0) / (len(at) + norm) for t, at in places.items())
        / terms.total
        for places, norm in zip(found, norms, strict=True)
    ]
    rarest = [max((terms.rarity[t] for t in places), default=0.0) / terms.rarest for places in found]
    columns = {
        "coverage": [terms.coverage(places) for places in found],
        "window_coverage": [terms.window_coverage(places) for places in found],
        "pair_coverage": [terms.pair_coverage(places) for places in found],
        "lexical": bm25,
        "rarest_covered": rarest,
    }
    return {name: np.array(columns[name], dtype=np.float32) for name in _COVERED}


def _texts(
    terms: QueryTerms, candidates: Sequence[Candidate], texts: Sequence[Words], positions: Sequence[Positions]
) -> FeatureColumns:
    """Names of the query, words that it does not have, the length of each candidate, and signs of prose."""
    lengths = _lengths(texts)
    columns = {
        "name_coverage": [terms.name_coverage(places) for places in positions],
        "novelty": [
            len({s for s in words.stems if s not in terms.rarity}) / length
            for words, length in zip(texts, lengths, strict=True)
        ],
        "answer_type": [terms.answer_type(words) for words in texts],
        "log_words": np.log(lengths),
        "letter_share": [len(_NO_LETTER.sub("", c.text)) / max(len(c.text), 1) for c in candidates],
        "sentence_end": [c.text.rstrip().endswith(_SENTENCE_ENDS) for c in candidates],
    }
    return {name: np.array(values, dtype=np.float32) for name, values in columns.items()}


def _lengths(texts: Sequence[Words]) -> FloatArray:
    return np.array([max(len(words.stems), 1) for words in texts], dtype=np.float32)


def retrieval_scores(candidates: Sequence[Candidate], name: str) -> FloatArray:
    """Return (n,) scores of the retrieval, NaN where unknown; of cosines, the levels if there are any.

    name: "dense", "core", "bm25" or "bm25_passage"; see `LEVELS`.
    """
    level = LEVELS.get(name, name)
    return np.array([c.scores.get(level, c.scores.get(name, math.nan)) for c in candidates], dtype=np.float32)


def places(candidates: Sequence[Candidate]) -> FloatArray:
    """Return the (n,) places of candidates: log2(1 + b), where b counts higher scores.

    b: distinct higher scores in the same document, plus the documents with a higher best score, of which two
    do not count.
    """
    scores = np.array([c.score for c in candidates])
    ids, owners = np.unique([c.doc_id for c in candidates], return_inverse=True)
    best = np.full(len(ids), -math.inf)
    np.maximum.at(best, owners, scores)
    order = np.lexsort((-scores, owners))
    is_first = np.diff(owners[order], prepend=-1) != 0
    is_lower = np.diff(scores[order], prepend=math.inf) != 0
    distinct = np.cumsum(is_first | is_lower)
    n_better = np.empty(len(scores))
    n_better[order] = distinct - np.maximum.accumulate(np.where(is_first, distinct, 0))
    others = np.searchsorted(np.sort(-best), -scores, side="left") - (best[owners] > scores)
    return np.log2(1 + n_better + np.maximum(others - _LEFT_OUT, 0)).astype(np.float32)


def _standing(candidates: Sequence[Candidate], columns: FeatureColumns) -> FeatureColumns:
    """How each candidate compares with the best of its document, and with the usual in the list.

    Usual is the lower quartile. The best of other documents has no part in it: anybody can write one.
    """
    ids, owners = np.unique([c.doc_id for c in candidates], return_inverse=True)
    own = {name: _best_of_own(columns[name], owners, len(ids)) for name in _TO_OWN}
    usual = {name: _lower_quartile(columns[name]) for name in _COMPARED}
    to_own = {
        name: columns[name] - best if name in ("dense", "core") else _share(columns[name], best)
        for name, best in own.items()
    }
    return {
        **{f"{name.removesuffix('_share')}_to_own": values for name, values in to_own.items()},
        **{f"{name.removesuffix('_share')}_over_usual": columns[name] - usual[name] for name in _COMPARED},
        **{f"usual_{name}": np.full(len(candidates), usual[name]) for name in ("coverage", "dense")},
    }


def _best_of_own(values: FloatArray, owners: IntArray, n_documents: int) -> FloatArray:
    """(n,) best value of each candidate's document; owners: (n,) number of the document."""
    best = np.full(n_documents, np.nan, dtype=np.float32)
    np.fmax.at(best, owners, values)
    return best[owners]


def _lower_quartile(values: FloatArray) -> float:
    """Value that a quarter of the known ones are below; NaN if too few are known."""
    known = values[~np.isnan(values)]
    return float(np.quantile(known, 0.25)) if len(known) >= _FEWEST else math.nan


def _share(values: FloatArray, best: FloatArray) -> FloatArray:
    return np.divide(values, best, out=values.astype(np.float32).copy(), where=best > 1e-6)


def _neighbourhood(
    terms: QueryTerms,
    candidates: Sequence[Candidate],
    positions: Sequence[Positions],
    columns: FeatureColumns,
) -> FeatureColumns:
    """The best features of each candidate's neighbours."""
    unknown = np.full(len(candidates), math.nan)
    out = {name: unknown.copy() for name in ("near_lexical", "near_coverage", "near_dense")}
    documents: dict[str, list[int]] = {}
    for row, candidate in enumerate(candidates):
        documents.setdefault(candidate.doc_id, []).append(row)
    for rows in documents.values():
        near = _neighbours([candidates[row] for row in rows])
        has_near = np.array([len(others) > 0 for others in near])
        places = np.array(rows)[has_near]
        out["near_lexical"][places] = _best_of(near, columns["lexical"][rows])[has_near]
        out["near_coverage"][places] = _coverage_near(terms, [positions[row] for row in rows], near)[has_near]
        out["near_dense"][places] = _best_of(near, columns["dense"][rows])[has_near]
    return out


def _neighbours(pieces: Sequence[Candidate]) -> list[IntArray]:
    """The rows of the neighbours of each piece of one document; a piece is no neighbour of itself."""
    starts, ends = (np.array([getattr(piece, edge) for piece in pieces]) for edge in ("start", "end"))
    order = np.argsort(starts)
    first = np.searchsorted(np.maximum.accumulate(ends[order]), starts - _NEAR, "right")
    found = [order[a:b] for a, b in zip(first, np.searchsorted(starts[order], ends + _NEAR), strict=True)]
    reach = starts - _NEAR
    return [rows[(ends[rows] > reach[row]) & (rows != row)] for row, rows in enumerate(found)]


def _best_of(near: Sequence[IntArray], values: FloatArray) -> FloatArray:
    """(n,) largest value of each piece's neighbours: minus infinity without one, NaN if one is NaN."""
    return np.array([values[rows].max(initial=-math.inf) for rows in near], dtype=np.float32)


def _coverage_near(terms: QueryTerms, positions: Sequence[Positions], near: Sequence[IntArray]) -> FloatArray:
    """(n,) coverage of the query by each piece of a document together with its neighbours."""
    total = np.zeros(len(positions), dtype=np.float32)
    for term in dict.fromkeys(chain.from_iterable(positions)):
        covered = np.array([term in places for places in positions])
        for row in np.flatnonzero(covered).tolist():
            covered[near[row]] = True
        total[covered] += terms.coverage([term])
    return total
