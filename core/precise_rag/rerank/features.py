"""Features of the packaged reranker, from the query, the texts and the retrieval scores.

A feature that cannot be known (no dense score, no neighbours, no names in the query) is NaN; the
network has learned what that means.
"""

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from precise_rag.rerank.neighbours import Spans
from precise_rag.rerank.query_terms import Positions, QueryTerms
from precise_rag.stems import IdfTable, Words, read_words
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
"""Names of the features, in the order of their columns."""

_NEAR = 600
"""Two candidates of one document are neighbours if fewer characters lie between them."""

_K1, _B = 1.2, 0.75
"""Parameters of BM25 within the list."""

_NO_LETTER = re.compile(r"[\W\d_]+")
_SENTENCE_ENDS = tuple(".!?\"'”’)。！？")

FeatureColumns = dict[str, FloatArray]
"""(n,) values of each feature, by its name."""


def features(query: str, candidates: Sequence[Candidate], idf_table: IdfTable) -> FloatArray:
    """Return (n, len(FEATURES)) float32 features of n > 0 candidates, NaN where unknown.

    A row depends on its candidate, on the query and on the other candidates, not on their order.
    """
    terms = QueryTerms.of(query, idf_table)
    texts = [read_words(c.text) for c in candidates]
    positions = [terms.positions(words) for words in texts]
    columns = _lexical(terms, texts, positions)
    columns |= _form(candidates)
    columns |= _retrieval(candidates)
    columns |= _neighbourhood(terms, candidates, positions, columns)
    whole_list = {
        "list_coverage": columns["coverage"].max(),
        "list_dense": _best(columns["dense"]),
        "query_terms": len(terms.rarity),
        "query_rarity": terms.total / max(len(terms.rarity), 1),
    }
    columns |= {name: np.full(len(candidates), value) for name, value in whole_list.items()}
    return np.stack([columns[name] for name in FEATURES], axis=1).astype(np.float32)


def _lexical(terms: QueryTerms, texts: Sequence[Words], positions: Sequence[Positions]) -> FeatureColumns:
    """How much of the query the words of each candidate cover, and how many other words it has."""
    lengths = np.array([max(len(words.stems), 1) for words in texts], dtype=np.float32)
    norms = _K1 * (1.0 - _B + _B * lengths / lengths.mean())
    bm25 = [
        sum(terms.rarity[t] * len(at) * (_K1 + 1.0) / (len(at) + norm) for t, at in found.items())
        / terms.total
        for found, norm in zip(positions, norms, strict=True)
    ]
    columns = {
        "coverage": [terms.coverage(found) for found in positions],
        "window_coverage": [terms.window_coverage(found) for found in positions],
        "pair_coverage": [terms.pair_coverage(found) for found in positions],
        "lexical": bm25,
        "rarest_covered": [
            max((terms.rarity[t] for t in found), default=0.0) / terms.rarest for found in positions
        ],
        "name_coverage": [terms.name_coverage(found) for found in positions],
        "novelty": [
            len({s for s in words.stems if s not in terms.rarity}) / length
            for words, length in zip(texts, lengths, strict=True)
        ],
        "answer_type": [terms.answer_type(words) for words in texts],
    }
    out = {name: np.array(values, dtype=np.float32) for name, values in columns.items()}
    out["log_words"] = np.log(lengths)
    out["lexical_to_best"] = _to_best(out["lexical"])
    return out


def _form(candidates: Sequence[Candidate]) -> FeatureColumns:
    """Signs of prose, as opposed to headings, tables and markup."""
    letters = [len(_NO_LETTER.sub("", c.text)) / max(len(c.text), 1) for c in candidates]
    ends = [c.text.rstrip().endswith(_SENTENCE_ENDS) for c in candidates]
    return {
        "letter_share": np.array(letters, dtype=np.float32),
        "sentence_end": np.array(ends, dtype=np.float32),
    }


def _retrieval(candidates: Sequence[Candidate]) -> FeatureColumns:
    """The retrieval's scores, as they are and relative to the list."""
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
        "reciprocal_rank": _reciprocal_ranks(score) if spread > 0.0 else unknown,
    }


def _reciprocal_ranks(score: npt.NDArray[np.float64]) -> FloatArray:
    n_better = len(score) - np.searchsorted(np.sort(score), score, side="right")
    ranks: FloatArray = (1.0 / (1 + n_better)).astype(np.float32)
    return ranks


def _neighbourhood(
    terms: QueryTerms,
    candidates: Sequence[Candidate],
    positions: Sequence[Positions],
    columns: FeatureColumns,
) -> FeatureColumns:
    """The best features of each candidate's neighbours, and its document's share of the list."""
    unknown = np.full(len(candidates), math.nan)
    out = {name: unknown.copy() for name in ("near_lexical", "near_coverage", "near_dense", "document_share")}
    documents: dict[str, list[int]] = {}
    for row, candidate in enumerate(candidates):
        documents.setdefault(candidate.doc_id, []).append(row)
    for rows in documents.values():
        spans = Spans([candidates[row].start for row in rows], [candidates[row].end for row in rows], _NEAR)
        lexical = spans.best_near(columns["lexical_to_best"][rows])
        has_near = lexical != -math.inf
        near = np.array(rows)[has_near]
        out["near_lexical"][near] = lexical[has_near]
        out["near_coverage"][near] = _coverage_near(terms, [positions[row] for row in rows], spans)[has_near]
        out["near_dense"][near] = spans.best_near(columns["dense_to_best"][rows])[has_near]
    total = columns["lexical"].sum()
    if 1 < len(documents) < len(candidates) and total > 0.0:
        for rows in documents.values():
            out["document_share"][rows] = columns["lexical"][rows].sum() / total
    return out


def _coverage_near(terms: QueryTerms, positions: Sequence[Positions], spans: Spans) -> FloatArray:
    """(n,) coverage of the query by each piece of a document together with its neighbours."""
    total = np.zeros(len(positions), dtype=np.float32)
    with_term: dict[str, list[int]] = {}
    for row, found in enumerate(positions):
        for term in found:
            with_term.setdefault(term, []).append(row)
    for term, rows in with_term.items():
        total[spans.has_near(rows)] += terms.coverage([term])
    return total


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
