"""BM25 over the texts of all shards of an index, and the inverted index that it reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from precise_rag.checks import check_number
from precise_rag.index.groups import Groups
from precise_rag.index.headings import Headings
from precise_rag.index.table import Columns, Shard
from precise_rag.index.words import WordSettings
from precise_rag.types import BoolArray, FloatArray, IntArray

_MOST = np.iinfo(np.uint16).max
"""The most often that a term is counted in one row."""


@dataclass(frozen=True, kw_only=True)
class BM25Settings(WordSettings):
    """Settings of BM25; see also `WordSettings`.

    k1: how slowly repeated words stop adding to a score (0 or more); 0 counts each word once.
    b: how much long rows are penalised (0 to 1).
    """

    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        WordSettings.__post_init__(self)
        check_number("k1", self.k1, least=0)
        check_number("b", self.b, least=0, most=1)


class Postings(NamedTuple):
    """An inverted index in arrays: for each term, the rows that contain it, and how often.

    terms: (n_terms,) the numbers of all terms, ascending.
    starts: (n_terms + 1,) terms[i] is in rows[starts[i]:starts[i + 1]].
    rows: row numbers, ascending within a term.
    counts: how often the term is in each of these rows.
    """

    terms: IntArray
    starts: IntArray
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, terms: npt.NDArray[np.integer], rows: IntArray, n_rows: int) -> Self:
        """Build from terms and the row that each is in."""
        pairs, counts = np.unique(terms.astype(np.int64) * n_rows + rows, return_counts=True)
        known, starts = np.unique(pairs // max(n_rows, 1), return_index=True)
        counts = np.minimum(counts, _MOST).astype(np.uint16)
        return cls(known, np.append(starts, len(pairs)), (pairs % max(n_rows, 1)).astype(np.int32), counts)

    def places_of(self, term: int) -> slice:
        """Where a term's rows are in `rows` and `counts`; nowhere for a term that no row contains."""
        return slice(*self.starts[np.searchsorted(self.terms, [term, term + 1])].tolist())

    def rows_of(self, term: int) -> npt.NDArray[np.int32]:
        """The rows that contain a term, ascending."""
        return self.rows[self.places_of(term)]

    def frequencies(self, terms: IntArray, alive: BoolArray | None = None) -> IntArray:
        """(k,) number of rows that contain each term; alive: (n_rows,) the rows to count, None for all."""
        posted = (self.rows_of(term) for term in terms.tolist())
        counted = (len(rows) if alive is None else int(np.count_nonzero(alive[rows])) for rows in posted)
        return np.fromiter(counted, dtype=np.int64, count=len(terms))

    def overlap(self, terms: IntArray, least: int, n_rows: int) -> BoolArray:
        """(n_rows,) whether each row contains at least `least` of these distinct terms."""
        shared = np.zeros(n_rows, dtype=np.int32)
        for term in terms.tolist():
            shared[self.rows_of(term)] += 1
        return shared >= least


def idf(frequencies: IntArray, n_rows: int) -> FloatArray:
    """(k,) log(1 + (N - df + 0.5) / (df + 0.5)), never negative; frequencies: (k,) df. n_rows: N."""
    return np.log1p((n_rows - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)


class BM25Matrix:
    """Word counts of the texts of one shard, for BM25; a text is a row or a group of rows.

    arrays: what `counted_words` returns.
    starts: (n_texts,) first row of each text; None if every row is a text.
    """

    def __init__(self, arrays: Columns, starts: IntArray | None = None) -> None:
        self.lengths, self._starts = arrays["lengths"], starts
        self.postings = Postings(*(arrays[name] for name in Postings._fields))

    @classmethod
    def of(
        cls, shard: Shard, name: str, groups: Groups | None = None, headings: Headings | None = None
    ) -> Self:
        """Count the words of a shard; the counts are kept with it under a name.

        groups: rows to join into one text each; default: every row is a text.
        headings: of the rows; the words of a group's headings belong to its text. Default: none.
        """
        arrays = shard.kept(name, lambda: counted_words(shard.columns, groups, headings))
        return cls(arrays, None if groups is None else groups.starts)

    def living(self, rows: BoolArray | None) -> BoolArray | None:
        """(n_texts,) whether each text is not deleted; rows: (n_rows,) the same of the rows. None: all."""
        return rows if rows is None or self._starts is None else rows[self._starts]

    def having(self, terms: IntArray) -> BoolArray:
        """(n_texts,) whether each text has all of some distinct words."""
        return self.postings.overlap(terms, len(terms), len(self.lengths))

    def scores(self, terms: IntArray, weights: FloatArray, slope: float, base: float) -> FloatArray:
        """(n_texts,) sum of `weight * count / (count + base + slope * length)` over terms.

        terms: (k,) distinct words. weights: (k,) their idf.
        """
        scores = np.zeros(len(self.lengths), dtype=np.float32)
        for term, weight in zip(terms.tolist(), weights, strict=True):
            places = self.postings.places_of(term)
            texts, counts = self.postings.rows[places], self.postings.counts[places].astype(np.float32)
            scores[texts] += weight * counts / (counts + (base + slope * self.lengths[texts]))
        return scores


def counted_words(
    columns: Columns, groups: Groups | None = None, headings: Headings | None = None
) -> Columns:
    """Count the words of texts; see `BM25Matrix.of`."""
    n_texts = len(columns["words.lengths"] if groups is None else groups.starts)
    terms, texts = words_of_texts(columns, groups, headings)
    lengths = np.bincount(texts, minlength=n_texts).astype(np.float32)
    return {**Postings.of(terms, texts, n_texts)._asdict(), "lengths": lengths}


def words_of_texts(
    columns: Columns, groups: Groups | None = None, headings: Headings | None = None
) -> tuple[IntArray, IntArray]:
    """(k,) the words of all texts, from the ragged column "words", and (k,) the text that each is in."""
    words, lengths = columns["words.values"], columns["words.lengths"]
    texts = np.repeat(np.arange(len(lengths)), lengths)
    if groups is None:
        return words, texts
    if headings is None:
        return words, groups.of_row[texts]
    heading_words, of_heading = headings.words_of(groups)
    return np.append(words, heading_words), np.append(groups.of_row[texts], of_heading)


def words_found(scores: FloatArray, weights: FloatArray, settings: BM25Settings) -> float:
    """Share (0 to 1) of a query's words that the best text has; 1 if it has all, by weight.

    scores: (n,) BM25 of texts, which is 1 / (1 + k1) of the weights for each word once in the mean length.
    weights: (k,) `idf` of the query's words.
    """
    complete = float(weights.sum()) / (1 + settings.k1)
    return min(float(scores.max()) / complete, 1.0) if complete else 0.0


def bm25_scores(
    matrices: Sequence[BM25Matrix], rows: Sequence[BoolArray | None], terms: IntArray, settings: BM25Settings
) -> tuple[list[FloatArray], FloatArray]:
    """Okapi BM25 in Lucene's form: (n_texts,) scores of the texts of each shard, and (k,) the words' `idf`.

    matrices: of all shards of an index. Texts and words are counted in all of them together, without what
        is deleted, so the scores are those of one matrix.
    rows: of each shard, whether each of its rows is not deleted; None for all.
    terms: the numbers of the query's distinct words.
    """
    counted = [(matrix, matrix.living(alive)) for matrix, alive in zip(matrices, rows, strict=True)]
    n_texts = sum(len(matrix.lengths) if texts is None else int(texts.sum()) for matrix, texts in counted)
    kept = (matrix.lengths if texts is None else matrix.lengths[texts] for matrix, texts in counted)
    mean_length = max(sum(float(lengths.sum(dtype=np.float64)) for lengths in kept), 1.0) / max(n_texts, 1)
    frequencies = sum(matrix.postings.frequencies(terms, texts) for matrix, texts in counted)
    weights = idf(np.asarray(frequencies), n_texts)
    slope, base = settings.k1 * settings.b / mean_length, settings.k1 * (1 - settings.b)
    return [matrix.scores(terms, weights, slope, base) for matrix in matrices], weights
