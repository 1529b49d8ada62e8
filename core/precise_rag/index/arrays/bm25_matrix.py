"""BM25 over rows of word numbers, as one sparse matrix."""

from dataclasses import dataclass
from itertools import pairwise

import bm25s
import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.types import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class BM25Settings:
    """k1: how soon repetition stops to count. b: how much long rows are held back. stop_words: words
    left out, see `index.stop_words`."""

    k1: float = 1.5
    b: float = 0.75
    stop_words: str | tuple[str, ...] = "english"

    def __post_init__(self) -> None:
        if isinstance(self.stop_words, list):  # from JSON
            object.__setattr__(self, "stop_words", tuple(self.stop_words))
        if self.k1 < 0 or not 0 <= self.b <= 1:
            raise InputError(f"k1 is {self.k1} and b is {self.b}; expected k1 >= 0 and 0 <= b <= 1")


class BM25Matrix:
    """bm25s in Lucene's form over rows of word numbers: one text a row.

    ready: `arrays` of an earlier one over the same rows, which saves most of the time.
    """

    def __init__(
        self,
        terms: npt.NDArray[np.int32],
        lengths: IntArray,
        n_terms: int,
        settings: BM25Settings,
        ready: Columns | None = None,
    ) -> None:
        self._n_rows = len(lengths)
        self._n_terms = n_terms if len(terms) else 0
        self._matrix = bm25s.BM25(method="lucene", k1=settings.k1, b=settings.b)
        if ready:
            self._matrix.scores = {**ready, "num_docs": self._n_rows}
            self._matrix.nonoccurrence_array = None  # Lucene's form has none
        elif len(terms):
            numbers, ends = terms.tolist(), np.cumsum(lengths).tolist()
            rows = [numbers[first:last] for first, last in pairwise([0, *ends])]
            self._matrix.index((rows, {str(i): i for i in range(n_terms)}), show_progress=False)

    @property
    def arrays(self) -> Columns:
        """The matrix, a column a term: "data", "indices" and "indptr"; nothing where there are no words."""
        parts = ("data", "indices", "indptr") if self._n_terms else ()
        return {part: self._matrix.scores[part] for part in parts}

    def scores(self, terms: npt.NDArray[np.int32]) -> FloatArray:
        """(n_rows,) the score of each row for different query terms; 0 where none occurs."""
        known = terms[terms < self._n_terms].tolist()
        if not known:
            return np.zeros(self._n_rows, dtype=np.float32)
        scores: FloatArray = self._matrix.get_scores_from_ids(known)
        return scores


def bm25_matrix(
    columns: Columns,
    n_terms: int,
    settings: BM25Settings,
    groups: Groups | None = None,
    ready: Columns | None = None,
) -> BM25Matrix:
    """BM25 over the rows, or over groups of rows taken as one text each."""
    lengths = np.asarray(columns["words.lengths"], dtype=np.int64)
    if groups is not None:
        lengths = np.add.reduceat(lengths, groups.starts)
    return BM25Matrix(columns["words.values"], lengths, n_terms, settings, ready)
