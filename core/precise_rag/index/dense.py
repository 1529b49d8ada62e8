"""Exact dense search over chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from precise_rag.checks import shown
from precise_rag.encoded import encode_documents
from precise_rag.errors import InputError
from precise_rag.index.arrays.chunk_vectors import chunk_vectors
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.context import check_alpha
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.products import Products, load_products
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.vectors import VectorSettings, vector_columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.chunk_base import ChunkIndex, ChunkSettings
from precise_rag.index.nearest import nearest_rows
from precise_rag.index.segments import Part, Segment
from precise_rag.index.snapshot import Hits, Snapshot
from precise_rag.types import FloatArray, IntArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class DenseSettings(ChunkSettings, VectorSettings):
    """Settings of DenseIndex; see also `ChunkSettings` and `VectorSettings`.

    chunk_vectors: "encode" the text of each chunk; or, without encoding it, take the token-weighted
        "mean" of its sentences' vectors, or that mean weighted with the text around it ("context").
    alpha: weight of the chunk against the text around it (0 to 1); only for "context".
    """

    chunk_vectors: Literal["encode", "mean", "context"] = "encode"
    alpha: float = 0.6

    def __post_init__(self) -> None:
        ChunkSettings.__post_init__(self)
        VectorSettings.__post_init__(self)
        check_alpha(self.alpha)
        if self.chunk_vectors not in ("encode", "mean", "context"):
            raise InputError(
                f"chunk_vectors must be 'encode', 'mean' or 'context', got {shown(self.chunk_vectors)}"
            )


class DenseIndex(ChunkIndex):
    """Chunks scored by cosine with the query; every chunk is compared."""

    kind = "dense"
    settings_type: ClassVar[type] = DenseSettings
    score_scale: ClassVar[ScoreScale] = "cosine"
    search_settings = frozenset({"backend"})

    def _needs_sentence_vectors(self) -> bool:
        return bool(self.settings.chunk_vectors != "encode" or self.settings.chunks == "sentences")

    def _describe(
        self, texts: Sequence[str], table: SentenceTable, groups: Groups, words: Vocabulary
    ) -> Columns:
        assert self.encoder is not None
        if table.vectors is None:
            return vector_columns(encode_documents(self.encoder, texts), self.settings.precision)
        alpha = self.settings.alpha if self.settings.chunk_vectors == "context" else 1.0
        ends = groups.starts + groups.sizes
        vectors = chunk_vectors(table.vectors, table.n_tokens, groups.starts, ends, alpha=alpha)
        return vector_columns(vectors, self.settings.precision)

    def _prepare(self, segment: Segment) -> Any:
        kept = segment.kept if self._faiss() is None else None
        return load_products(segment.collection.columns, self.settings.backend, kept)

    def _hits(self, snapshot: Snapshot, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        direction = self._query_vector(query, vector)
        rows = None if snapshot.matching is None else np.flatnonzero(snapshot.matching)
        return self._best_of(snapshot, rows, direction, top_k)

    def _products(self, part: Part) -> Products:
        """The products of a query with the rows of a part."""
        products: Products = part.prepared
        return products

    def _best_of(self, snapshot: Snapshot, rows: IntArray | None, direction: FloatArray, top_k: int) -> Hits:
        """The best of some rows, by their product with a query's vector (d,).

        rows: ascending; None for all.
        """
        every = ((part, None) for part in snapshot.parts)
        asked = every if rows is None else snapshot.split(rows)
        found = [self._best_of_part(part, own, direction, top_k) for part, own in asked]
        numbered = [own + first for (own, _), first in zip(found, snapshot.firsts.tolist(), strict=False)]
        rows, scores = np.concatenate(numbered), np.concatenate([scores for _, scores in found])
        best = top_rows(scores, top_k)
        return Hits(rows[best], scores[best], {"dense": scores[best]})

    def _best_of_part(
        self, part: Part, rows: IntArray | None, direction: FloatArray, top_k: int
    ) -> tuple[IntArray, FloatArray]:
        found = None
        if part.segment.near is not None:
            found = nearest_rows(part, direction, top_k, None if rows is None else part.mask(rows))
        return self._products(part).best(direction, top_k, rows) if found is None else found
