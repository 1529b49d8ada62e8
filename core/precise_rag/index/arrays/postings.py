"""An inverted index in arrays: for each term, the rows that contain it, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from precise_rag.types import FloatArray, IntArray

_MOST = np.iinfo(np.uint16).max
"""The most often that a term is counted in one row."""


@dataclass(frozen=True, slots=True)
class Postings:
    """The rows of each term.

    n_rows: number of rows.
    indptr: (n_terms + 1,) term t is in rows[indptr[t]:indptr[t + 1]].
    rows: row numbers, ascending within a term.
    counts: how often the term is in each of these rows.
    """

    n_rows: int
    indptr: IntArray
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, terms: npt.NDArray[np.int32], lengths: npt.NDArray[np.integer], n_terms: int) -> Postings:
        """Build from the terms of all rows.

        terms: term numbers, one row after another.
        lengths: (n_rows,) number of terms in each row.
        n_terms: size of the vocabulary.
        """
        n_rows = len(lengths)
        places = terms.astype(np.int64) * n_rows + np.repeat(np.arange(n_rows), lengths)
        pairs, counts = np.unique(places, return_counts=True)
        indptr = np.searchsorted(pairs, np.arange(n_terms + 1) * n_rows)
        rows = (pairs % max(n_rows, 1)).astype(np.int32)
        return cls(n_rows, indptr, rows, np.minimum(counts, _MOST).astype(np.uint16))

    def places_of(self, term: int) -> slice:
        """Where a term's rows are in `rows` and `counts`; nowhere for a term that is not known."""
        if not 0 <= term < len(self.indptr) - 1:
            return slice(0, 0)
        return slice(int(self.indptr[term]), int(self.indptr[term + 1]))

    def rows_of(self, term: int) -> npt.NDArray[np.int32]:
        """The rows that contain a term, ascending."""
        return self.rows[self.places_of(term)]

    def frequencies(self, terms: IntArray, alive: npt.NDArray[np.bool_] | None = None) -> IntArray:
        """(k,) number of rows that contain each term; alive: (n_rows,) the rows to count, None for all."""
        posted = (self.rows_of(term) for term in terms.tolist())
        counted = (len(rows) if alive is None else int(np.count_nonzero(alive[rows])) for rows in posted)
        return np.fromiter(counted, dtype=np.int64, count=len(terms))

    def overlap(self, terms: IntArray, least: int) -> npt.NDArray[np.bool_]:
        """(n_rows,) whether each row contains at least `least` of these distinct terms."""
        if least == 1:
            contains = np.zeros(self.n_rows, dtype=np.bool_)
            for term in terms.tolist():
                contains[self.rows_of(term)] = True
            return contains
        shared = np.zeros(self.n_rows, dtype=np.int32)
        for term in terms.tolist():
            shared[self.rows_of(term)] += 1
        return shared >= least


def idf(frequencies: IntArray, n_rows: int) -> FloatArray:
    """(k,) log(1 + (N - df + 0.5) / (df + 0.5)), never negative; frequencies: (k,) df. n_rows: N."""
    weights: FloatArray = np.log1p((n_rows - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)
    return weights
