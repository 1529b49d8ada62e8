"""An inverted index in arrays: for each term, the rows that contain it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from precise_rag.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Postings:
    """The rows of each term.

    n_rows: number of rows.
    indptr: (n_terms + 1,) term t is in rows[indptr[t]:indptr[t + 1]].
    rows: row numbers, ascending within a term.
    """

    n_rows: int
    indptr: IntArray
    rows: npt.NDArray[np.int32]

    @classmethod
    def of(cls, terms: npt.NDArray[np.int32], lengths: npt.NDArray[np.integer], n_terms: int) -> Postings:
        """Build from the terms of all rows.

        terms: term numbers, one row after another.
        lengths: (n_rows,) number of terms in each row.
        n_terms: size of the vocabulary.
        """
        n_rows = len(lengths)
        pairs = np.unique(terms.astype(np.int64) * n_rows + np.repeat(np.arange(n_rows), lengths))
        indptr = np.searchsorted(pairs, np.arange(n_terms + 1) * n_rows)
        return cls(n_rows, indptr, (pairs % max(n_rows, 1)).astype(np.int32))

    def rows_of(self, term: int) -> npt.NDArray[np.int32]:
        """The rows that contain a term, ascending."""
        return self.rows[self.indptr[term] : self.indptr[term + 1]]

    def overlap(self, terms: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """(n_rows,) how many of these distinct terms each row contains."""
        shared = np.zeros(self.n_rows, dtype=np.int32)
        for term in terms:
            shared[self.rows_of(term)] += 1
        return shared

    def idf(self) -> FloatArray:
        """(n_terms,) log(1 + (N - df + 0.5) / (df + 0.5)), never negative."""
        df = np.diff(self.indptr)
        return np.log1p((self.n_rows - df + 0.5) / (df + 0.5)).astype(np.float32)
