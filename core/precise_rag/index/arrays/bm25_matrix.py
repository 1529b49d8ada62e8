"""BM25 over rows of word numbers, as one sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from precise_rag.checks import check_number
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.headings import Headings
from precise_rag.index.arrays.stop_words import WordSettings
from precise_rag.types import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class BM25Settings(WordSettings):
    """Settings of BM25.

    k1: how slowly repeated words stop adding to a score (0 or more); 0 counts each word once.
    b: how much long rows are penalised (0 to 1).
    stop_words: words to leave out; see `load_stop_words`.
    """

    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        WordSettings.__post_init__(self)
        check_number("k1", self.k1, least=0)
        check_number("b", self.b, least=0, most=1)


class BM25Matrix:
    """Okapi BM25 in Lucene's form, computed by bm25s; each row is one text.

    terms: word numbers of all rows, one row after another.
    lengths: (n_rows,) number of words in each row.
    n_terms: size of the vocabulary.
    settings: k1 and b.
    saved: `arrays` of an earlier matrix of the same rows, to skip the computation; optional.
    """

    def __init__(
        self,
        terms: npt.NDArray[np.int32],
        lengths: IntArray,
        n_terms: int,
        settings: BM25Settings,
        saved: Columns | None = None,
    ) -> None:
        self._n_rows = len(lengths)
        self._n_terms = n_terms if len(terms) else 0
        self._arrays: Columns = {}
        if saved:
            self._n_terms = len(saved["indptr"]) - 1  # the vocabulary may have grown since
            self._arrays = saved
        elif len(terms):
            import bm25s  # slow to import, and not needed to search a saved index

            matrix = bm25s.BM25(method="lucene", k1=settings.k1, b=settings.b)
            numbers, ends = terms.tolist(), np.cumsum(lengths).tolist()
            rows = [numbers[first:last] for first, last in pairwise([0, *ends])]
            matrix.index((rows, {str(i): i for i in range(n_terms)}), show_progress=False)
            self._arrays = {part: matrix.scores[part] for part in ("data", "indices", "indptr")}

    @classmethod
    def of(
        cls,
        columns: Columns,
        n_terms: int,
        settings: BM25Settings,
        groups: Groups | None = None,
        saved: Columns | None = None,
        headings: Headings | None = None,
    ) -> BM25Matrix:
        """BM25 over the ragged column "words".

        groups: rows to join into one text each; default: every row is a text.
        headings: of the rows; the words of a group's headings belong to its text. Default: none.
        """
        terms, lengths = columns["words.values"], np.asarray(columns["words.lengths"], dtype=np.int64)
        if groups is not None and headings is not None:
            terms, lengths = headings.words_with(columns, groups)
        elif groups is not None:
            lengths = np.add.reduceat(lengths, groups.starts)
        return cls(terms, lengths, n_terms, settings, saved)

    @property
    def arrays(self) -> Columns:
        """The sparse matrix: "data", "indices" and "indptr" by column; empty if there are no words."""
        return self._arrays if self._n_terms else {}

    def scores(self, terms: npt.NDArray[np.int32]) -> FloatArray:
        """(n_rows,) BM25 of each row for distinct query terms; 0 for rows that hold none of them."""
        scores = np.zeros(self._n_rows, dtype=np.float32)
        for term in terms[terms < self._n_terms].tolist():
            first, last = self._arrays["indptr"][term : term + 2]
            scores[self._arrays["indices"][first:last]] += self._arrays["data"][first:last]
        return scores
