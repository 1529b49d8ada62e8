"""BM25 over the texts of all segments of an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from precise_rag.checks import check_number
from precise_rag.index.arrays.collection import BoolArray, Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.heading_columns import Headings
from precise_rag.index.arrays.postings import Postings, idf
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


def counted_words(
    columns: Columns, n_terms: int, groups: Groups | None = None, headings: Headings | None = None
) -> Columns:
    """Count the words of texts, from the ragged column "words"; returns the arrays of a `BM25Matrix`.

    n_terms: size of the vocabulary.
    groups: rows to join into one text each; default: every row is a text.
    headings: of the rows; the words of a group's headings belong to its text. Default: none.
    """
    terms, lengths = columns["words.values"], np.asarray(columns["words.lengths"], dtype=np.int64)
    if groups is not None and headings is not None:
        terms, lengths = headings.words_with(columns, groups)
    elif groups is not None:
        lengths = np.add.reduceat(lengths, groups.starts)
    postings = Postings.of(terms, lengths, n_terms)
    return {
        "rows": postings.rows,
        "counts": postings.counts,
        "indptr": postings.indptr,
        "lengths": lengths.astype(np.float32),
    }


class BM25Matrix:
    """Word counts of the texts of one segment, for BM25; a text is a row or a group of rows.

    arrays: what `counted_words` returns.
    starts: (n_texts,) first row of each text; None if every row is a text.
    """

    def __init__(self, arrays: Columns, starts: IntArray | None = None) -> None:
        self.lengths, self._starts = arrays["lengths"], starts
        self.postings = Postings(len(self.lengths), arrays["indptr"], arrays["rows"], arrays["counts"])
        self._total = float(self.lengths.sum(dtype=np.float64))

    def living(self, rows: BoolArray | None) -> Living:
        """The texts to count. rows: (n_rows,) whether each row of the segment is living; None: all."""
        if rows is None:
            return Living(None, self.postings.n_rows, self._total)
        texts = rows if self._starts is None else rows[self._starts]
        dead = np.flatnonzero(~texts)
        lost = float(self.lengths[dead].sum(dtype=np.float64))
        return Living(texts, self.postings.n_rows - len(dead), self._total - lost)

    def scores(self, terms: IntArray, weights: FloatArray, slope: float, base: float) -> FloatArray:
        """(n_texts,) sum of `weight * count / (count + base + slope * length)` over terms.

        terms: (k,) distinct words; -1 for one that is not known here. weights: (k,) their idf.
        """
        scores = np.zeros(self.postings.n_rows, dtype=np.float32)
        for term, weight in zip(terms.tolist(), weights, strict=True):
            places = self.postings.places_of(term)
            texts, counts = self.postings.rows[places], self.postings.counts[places].astype(np.float32)
            scores[texts] += weight * counts / (counts + (base + slope * self.lengths[texts]))
        return scores


class Living(NamedTuple):
    """The texts of a matrix that are not deleted.

    texts: (n_texts,) whether each is not deleted; None for all.
    n_texts: their number.
    n_words: the words in them.
    """

    texts: BoolArray | None
    n_texts: int
    n_words: float


def bm25_scores(
    matrices: Sequence[BM25Matrix],
    rows: Sequence[BoolArray | None],
    terms: Sequence[IntArray],
    settings: BM25Settings,
) -> list[FloatArray]:
    """Okapi BM25 in Lucene's form: (n_texts,) scores of the texts of each segment.

    matrices: of all segments of an index. Texts and words are counted in all of them together, without what
        is deleted, so the scores are those of one matrix.
    rows: of each segment, whether each of its rows is not deleted; None for all.
    terms: of each segment, the numbers of the query's distinct words, in one order; -1 for unknown ones.
    """
    living = [matrix.living(alive) for matrix, alive in zip(matrices, rows, strict=True)]
    n_texts = sum(part.n_texts for part in living)
    mean_length = max(sum(part.n_words for part in living), 1.0) / max(n_texts, 1)
    counted = zip(matrices, terms, living, strict=True)
    frequencies = sum(matrix.postings.frequencies(t, part.texts) for matrix, t, part in counted)
    weights = idf(np.asarray(frequencies), n_texts)
    slope, base = settings.k1 * settings.b / mean_length, settings.k1 * (1 - settings.b)
    return [m.scores(t, weights, slope, base) for m, t in zip(matrices, terms, strict=True)]
