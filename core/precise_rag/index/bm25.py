"""BM25 over chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from precise_rag.index.arrays.bm25_matrix import BM25Matrix, BM25Settings
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.bm25_base import BM25Base
from precise_rag.index.chunk_base import ChunkIndex, ChunkSettings
from precise_rag.index.segments import Segment
from precise_rag.index.snapshot import Hits, Snapshot
from precise_rag.types import FloatArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class ChunkBM25Settings(ChunkSettings, BM25Settings):
    """Settings of BM25Index: those of `ChunkSettings` and `BM25Settings`."""

    def __post_init__(self) -> None:
        ChunkSettings.__post_init__(self)
        BM25Settings.__post_init__(self)


class BM25Index(BM25Base, ChunkIndex):
    """Chunks scored by Okapi BM25; chunks without a word of the query are not returned.

    The encoder is optional: only its tokenizer is used, to count tokens.
    """

    kind = "bm25"
    settings_type: ClassVar[type] = ChunkBM25Settings
    score_scale: ClassVar[ScoreScale] = "bm25"
    needs_encoder = False
    search_settings = frozenset({"filter_statistics"})

    def _describe(
        self, texts: Sequence[str], table: SentenceTable, groups: Groups, words: Vocabulary
    ) -> Columns:
        return words.columns(texts)

    def _prepare(self, segment: Segment) -> Any:
        return self._matrix(segment, "chunks")

    def _matrices(self, prepared: Any) -> Mapping[str, BM25Matrix]:
        return {"chunks": prepared}

    def _hits(self, snapshot: Snapshot, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        scores = np.concatenate(self._bm25(snapshot, query)["chunks"])
        if snapshot.matching is not None:
            scores = np.where(snapshot.matching, scores, np.float32(0))
        rows = top_rows(scores, top_k)
        return Hits.of(rows[scores[rows] > 0], scores, {"bm25": scores})
