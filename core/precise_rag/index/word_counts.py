"""BM25 over the rows of an index: words are counted in all texts that are not deleted."""

from collections.abc import Callable, Mapping
from typing import Any

from precise_rag.index.arrays.bm25_matrix import (
    BM25Matrix,
    BM25Settings,
    bm25_scores,
    counted_words,
)
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.heading_columns import Headings
from precise_rag.index.rows.segments import Segment
from precise_rag.index.rows.snapshot import Snapshot
from precise_rag.types import FloatArray

Matrices = Mapping[str, BM25Matrix]
"""The matrices of a segment by the names that they are kept under."""


def kept_matrix(
    segment: Segment, name: str, groups: Groups | None = None, headings: Headings | None = None
) -> BM25Matrix:
    """Return BM25 over rows or groups of rows of a segment; it is kept with the segment.

    name: what its arrays are kept under. The rows have the columns of `Vocabulary.columns`.
    """
    columns, n_terms = segment.collection.columns, len(segment.words)
    arrays = segment.kept(name, lambda: counted_words(columns, n_terms, groups, headings))
    return BM25Matrix(arrays, None if groups is None else groups.starts)


def word_scores(
    snapshot: Snapshot, query: str, matrices: Callable[[Any], Matrices], settings: BM25Settings
) -> dict[str, list[FloatArray]]:
    """Return the BM25 scores of the texts of each matrix, by its name: one array for each part.

    matrices: the matrices of a prepared segment.
    """
    parts = snapshot.parts
    words = parts[0].segment.words.distinct(query)
    terms = [part.segment.words.numbers(words) for part in parts]
    prepared = [matrices(part.prepared) for part in parts]
    rows = [part.rows for part in parts]
    return {name: bm25_scores([one[name] for one in prepared], rows, terms, settings) for name in prepared[0]}
