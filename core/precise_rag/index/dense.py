"""Exact dense search over chunks: the plain peer of the other indexes, and their oracle."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.base import Hits, View, top_rows
from precise_rag.index.chunked import ChunkIndex, ChunkSettings
from precise_rag.index.collection import Collection, Columns
from precise_rag.index.context import Groups
from precise_rag.types import FloatArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class DenseSettings(ChunkSettings):
    """chunk_vectors: "encode" the chunk's text, or take the "mean" of its sentences' vectors,
    weighted by their tokens."""

    chunk_vectors: Literal["encode", "mean"] = "encode"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chunk_vectors not in ("encode", "mean"):
            raise InputError(f"chunk_vectors is {self.chunk_vectors!r}; expected 'encode' or 'mean'")


class DenseIndex(ChunkIndex):
    """Chunks by cosine with the query, compared with every one."""

    kind = "dense"
    settings_type: ClassVar[type] = DenseSettings
    score_scale: ClassVar[ScoreScale] = "cosine"

    def _sentence_vectors(self) -> bool:
        return bool(self.settings.chunk_vectors == "mean")

    def _describe(self, texts: Sequence[str], table: SentenceTable, groups: Groups) -> Columns:
        assert self.encoder is not None
        if table.vectors is None:
            return {"vectors": self.encoder.encode(texts)}
        weights = np.maximum(table.n_tokens, 1)[:, None]
        means = np.add.reduceat(table.vectors * weights, groups.starts) if len(table) else table.vectors
        return {"vectors": (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)}

    def _prepare(self, collection: Collection) -> Any:
        return None

    def _hits(self, view: View, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        scores = view.collection.columns["vectors"] @ self._query_vector(query, vector)
        return Hits.of(top_rows(scores, top_k), scores, {"dense": scores})
