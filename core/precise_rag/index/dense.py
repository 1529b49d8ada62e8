"""Exact dense search over chunks: the plain peer of the other indexes, and their oracle."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from precise_rag.errors import InputError
from precise_rag.index.arrays.chunk_vectors import chunk_vectors
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.products import load_products
from precise_rag.index.arrays.vectors import VectorSettings, vector_columns
from precise_rag.index.base import Hits, View
from precise_rag.index.chunk_base import ChunkIndex, ChunkSettings
from precise_rag.index.sentence_base import check_alpha
from precise_rag.types import FloatArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class DenseSettings(ChunkSettings, VectorSettings):
    """chunk_vectors: "encode" the chunk's text, take the "mean" of its sentences' vectors, weighted by
    their tokens, or weigh that mean with the chunk's "context", the text around it. alpha: the
    weight of the chunk against its context."""

    chunk_vectors: Literal["encode", "mean", "context"] = "encode"
    alpha: float = 0.6

    def __post_init__(self) -> None:
        ChunkSettings.__post_init__(self)
        VectorSettings.__post_init__(self)
        check_alpha(self.alpha)
        if self.chunk_vectors not in ("encode", "mean", "context"):
            raise InputError(
                f"chunk_vectors is {self.chunk_vectors!r}; expected 'encode', 'mean' or 'context'"
            )


class DenseIndex(ChunkIndex):
    """Chunks by cosine with the query, compared with every one."""

    kind = "dense"
    settings_type: ClassVar[type] = DenseSettings
    score_scale: ClassVar[ScoreScale] = "cosine"
    search_settings = frozenset({"backend"})

    def _sentence_vectors(self) -> bool:
        return bool(self.settings.chunk_vectors != "encode" or self.settings.chunks == "sentences")

    def _describe(self, texts: Sequence[str], table: SentenceTable, groups: Groups) -> Columns:
        assert self.encoder is not None
        if table.vectors is None:
            return vector_columns(self.encoder.encode(texts), self.settings.precision)
        alpha = self.settings.alpha if self.settings.chunk_vectors == "context" else 1.0
        ends = groups.starts + groups.sizes
        vectors = chunk_vectors(table.vectors, table.n_tokens, groups.starts, ends, alpha=alpha)
        return vector_columns(vectors, self.settings.precision)

    def _prepare(self, collection: Collection) -> Any:
        return load_products(collection.columns, self.settings.backend)

    def _hits(self, view: View, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        rows, scores = view.prepared.best(self._query_vector(query, vector), top_k)
        return Hits(rows, scores, {"dense": scores})
