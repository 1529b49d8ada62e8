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
