"""BM25 over chunks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from precise_rag.index.arrays.bm25_matrix import BM25Settings
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.forms import Forms, check_numbers
from precise_rag.index.arrays.stop_words import load_stop_words
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.words import WORD_FORMS, Vocabulary
from precise_rag.index.chunks import ChunkSettings, cut_chunks
from precise_rag.index.document_index import DocumentIndex
from precise_rag.index.rows.segments import Segment
from precise_rag.index.rows.snapshot import Hits, Snapshot
from precise_rag.index.scheme import Checks, Scheme
from precise_rag.index.word_counts import kept_matrix, matrix_checks, word_scores
from precise_rag.protocols import Encoder
from precise_rag.types import Document, FloatArray, ScoreScale

_MATRIX = "chunks"


@dataclass(frozen=True, kw_only=True)
class ChunkBM25Settings(ChunkSettings, BM25Settings):
    """Settings of BM25Index: of its chunks and of BM25."""

    def __post_init__(self) -> None:
        ChunkSettings.__post_init__(self)
        BM25Settings.__post_init__(self)


class BM25Scheme(Scheme):
    """Rows are chunks with their words."""

    kind = "bm25"
    settings_type = ChunkBM25Settings
    score_scale: ClassVar[ScoreScale] = "bm25"
    search_settings = frozenset({"filter_statistics"})
    needs_encoder = False

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self.stop_words = load_stop_words(self.settings.stop_words)

    @override
    def forms(self) -> Forms:
        return WORD_FORMS

    @override
    def read(
        self, documents: Sequence[Document], words: Vocabulary, show_progress: bool
    ) -> Iterator[Columns]:
        tables = self.tables(documents, show_progress, vectors=False)
        for chunks in cut_chunks(tables, self.settings.chunks):
            yield {**chunks.columns, **words.columns(chunks.texts)}

    @override
    def check_columns(self, rows: Collection, n_words: int) -> None:
        check_numbers("words.values", rows.columns["words.values"], 0, n_words)

    @override
    def kept_checks(self, rows: Collection, n_words: int) -> Checks:
        return matrix_checks(n_words, [(_MATRIX, len(rows))])

    def prepare(self, segment: Segment) -> Any:
        """Return the matrix of the chunks; see `Scheme`."""
        return kept_matrix(segment, _MATRIX)

    @override
    def find(self, snapshot: Snapshot, query: str, vector: FloatArray | None, top_k: int) -> Hits:
        by_matrix = word_scores(snapshot, query, lambda prepared: {_MATRIX: prepared}, self.settings)
        scores = np.concatenate(by_matrix[_MATRIX])
        if snapshot.matching is not None:
            scores = np.where(snapshot.matching, scores, np.float32(0))
        rows = top_rows(scores, top_k)
        return Hits.of(rows[scores[rows] > 0], scores, {"bm25": scores})


class BM25Index(DocumentIndex):
    """Chunks scored by Okapi BM25; chunks without a word of the query are not returned.

    The encoder is optional: only its tokenizer is used, to count tokens.
    """

    scheme_type = BM25Scheme
