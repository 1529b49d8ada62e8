"""An inverted index in arrays: for each term the rows that hold it, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from precise_rag.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Postings:
    """Term t is in rows[indptr[t]:indptr[t + 1]], ascending, counts[…] times each."""

    n_rows: int
    indptr: IntArray
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]

    @classmethod
    def of(cls, terms: npt.NDArray[np.int32], lengths: npt.NDArray[np.integer], n_terms: int) -> Postings:
        """From the rows' terms one after another; lengths: (n_rows,) how many each row has."""
        n_rows = len(lengths)
        keys = terms.astype(np.int64) * n_rows + np.repeat(np.arange(n_rows), lengths)
        pairs, counts = np.unique(keys, return_counts=True)
        indptr = np.searchsorted(pairs, np.arange(n_terms + 1) * n_rows)
        return cls(n_rows, indptr, (pairs % max(n_rows, 1)).astype(np.int32), counts.astype(np.int32))

    @property
    def document_frequency(self) -> IntArray:
        """(n_terms,) in how many rows each term occurs."""
        return np.diff(self.indptr)

    def where(self, term: int) -> slice:
        """The part of `rows` and `counts` that belongs to a term."""
        return slice(int(self.indptr[term]), int(self.indptr[term + 1]))

    def overlap(self, terms: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """(n_rows,) how many of these different terms each row holds."""
        shared = np.zeros(self.n_rows, dtype=np.int32)
        for term in terms:
            shared[self.rows[self.where(term)]] += 1
        return shared

    def idf(self) -> FloatArray:
        """(n_terms,) log(1 + (N - df + 0.5) / (df + 0.5)), never negative."""
        df = self.document_frequency
        return np.log1p((self.n_rows - df + 0.5) / (df + 0.5)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class BM25:
    """Okapi BM25 in Lucene's form: sum of idf * tf / (tf + k1 * (1 - b + b * length / mean length)).

    weights: one per posting, everything but the query, so that a search only adds.
    """

    postings: Postings
    weights: FloatArray

    @classmethod
    def of(cls, postings: Postings, lengths: npt.NDArray[np.integer], k1: float, b: float) -> BM25:
        """lengths: (n_rows,) terms in each row."""
        mean = max(float(lengths.mean()), 1e-9)
        penalty = (k1 * (1 - b + b * lengths / mean)).astype(np.float32)
        idf = np.repeat(postings.idf(), postings.document_frequency)
        weights: FloatArray = idf * postings.counts / (postings.counts + penalty[postings.rows])
        return cls(postings, weights.astype(np.float32))

    def scores(self, terms: npt.NDArray[np.int32]) -> FloatArray:
        """(n_rows,) the score of each row for different query terms; 0 where none occurs."""
        scores = np.zeros(self.postings.n_rows, dtype=np.float32)
        for term in terms:
            place = self.postings.where(term)
            scores[self.postings.rows[place]] += self.weights[place]
        return scores
