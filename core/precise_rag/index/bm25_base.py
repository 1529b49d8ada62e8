"""The base class of indexes that score by BM25."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from precise_rag.index.arrays.bm25_matrix import BM25Matrix, bm25_scores, counted_words
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.headings import Headings
from precise_rag.index.arrays.stop_words import load_stop_words
from precise_rag.index.base import DocumentIndex
from precise_rag.index.segments import Segment
from precise_rag.index.snapshot import Snapshot
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray


class BM25Base(DocumentIndex):
    """An index with BM25 matrices, which are saved with it.

    The settings must be `BM25Settings`, and each row must have the columns of `Vocabulary.columns`. Scores
    are those of one matrix of all segments: words are counted in all texts that are not deleted.
    """

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._stop_words = load_stop_words(self.settings.stop_words)

    @abstractmethod
    def _matrices(self, prepared: Any) -> Mapping[str, BM25Matrix]:
        """The matrices of a prepared segment, by the names they were made with."""

    def _matrix(
        self, segment: Segment, name: str, groups: Groups | None = None, headings: Headings | None = None
    ) -> BM25Matrix:
        """BM25 over rows or groups of rows of a segment; name: what its arrays are saved under."""
        columns, n_terms = segment.collection.columns, len(segment.words)
        arrays = segment.kept(name, lambda: counted_words(columns, n_terms, groups, headings))
        return BM25Matrix(arrays, None if groups is None else groups.starts)

    def _bm25(self, snapshot: Snapshot, query: str) -> dict[str, list[FloatArray]]:
        """The scores of the texts of each matrix, by its name: one array for each part."""
        parts = snapshot.parts
        words = parts[0].segment.words.distinct(query)
        terms = [part.segment.words.numbers(words) for part in parts]
        matrices = [self._matrices(part.prepared) for part in parts]
        rows = [part.rows for part in parts]
        return {
            name: bm25_scores([found[name] for found in matrices], rows, terms, self.settings)
            for name in matrices[0]
        }
