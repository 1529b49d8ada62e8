"""Dense search over chunks: exact, or by a faiss index."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from precise_rag.checks import shown
from precise_rag.encoded import encode_documents
from precise_rag.errors import InputError
from precise_rag.index.arrays.chunk_vectors import chunk_vectors
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.context import check_alpha
from precise_rag.index.arrays.faiss_rows import FaissBackend, check_faiss
from precise_rag.index.arrays.products import Products, load_products
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.vectors import VectorSettings, vector_columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.chunks import ChunkSettings, DocumentChunks, cut_chunks
from precise_rag.index.document_index import DocumentIndex
from precise_rag.index.rows import nearest
from precise_rag.index.rows.segments import Part, Segment
from precise_rag.index.rows.snapshot import Hits, Snapshot
from precise_rag.index.scheme import Scheme
from precise_rag.protocols import Encoder
from precise_rag.types import Document, FloatArray, IntArray, ScoreScale

_BACKEND = re.compile(r"numpy|faiss(-gpu)?(:[^@]+(@.+)?)?")


@dataclass(frozen=True, kw_only=True)
class ChunkVectorSettings(ChunkSettings, VectorSettings):
    """Settings of indexes of chunks with vectors; see also `ChunkSettings` and `VectorSettings`.

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


@dataclass(frozen=True, kw_only=True)
class DenseSettings(ChunkVectorSettings):
    """Settings of DenseIndex; see also `ChunkVectorSettings`.

    backend: "numpy" compares every chunk; "faiss" with a factory string and search parameters, such as
        "faiss:IVF1024,SQ8@nprobe=16", builds an index of faiss; see `FaissBackend`.
    """

    backend: str = "numpy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.backend, str) or not _BACKEND.fullmatch(self.backend):
            raise InputError(
                f"backend must be 'numpy' or an index of faiss like 'faiss:HNSW32', got {shown(self.backend)}"
            )


class DenseScheme(Scheme):
    """Rows are chunks with a vector, which is compared with the query's vector."""

    kind = "dense"
    settings_type = DenseSettings
    score_scale: ClassVar[ScoreScale] = "cosine"
    search_settings = frozenset({"backend"})

    def __init__(self, encoder: Encoder, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self.faiss = FaissBackend.of(self.settings.backend)
        if self.faiss is not None:
            check_faiss(self.faiss.gpu)

    @override
    def read(
        self, documents: Sequence[Document], words: Vocabulary, show_progress: bool
    ) -> Iterator[Columns]:
        needs_sentences = self.settings.chunk_vectors != "encode" or self.settings.chunks == "sentences"
        tables = self.tables(documents, show_progress, vectors=needs_sentences)
        for chunks in cut_chunks(tables, self.settings.chunks):
            yield {**chunks.columns, **vector_columns(self._vectors(chunks), self.settings.precision)}

    def _vectors(self, chunks: DocumentChunks) -> FloatArray:
        table, groups = chunks.table, chunks.groups
        if table.vectors is None:
            return encode_documents(self.encoder, chunks.texts)
        alpha = self.settings.alpha if self.settings.chunk_vectors == "context" else 1.0
        ends = groups.starts + groups.sizes
        return chunk_vectors(table.vectors, table.n_tokens, groups.starts, ends, alpha=alpha)

    def prepare(self, segment: Segment) -> Any:
        """Return the products of a query with the rows; see `Scheme`."""
        return load_products(segment.collection.columns, segment.kept if self.faiss is None else None)

    @override
    def make_ready(self, segment: Segment) -> None:
        super().make_ready(segment)
        if self.faiss is not None and segment.near is None and len(segment.collection) >= nearest.EXACT_ROWS:
            segment.near = nearest.load_rows(segment, self.faiss)

    @override
    def kept(self, segment: Segment) -> Columns:
        near = {} if self.faiss is None else nearest.saved_rows(segment, self.faiss)
        return {**nearest.without_rows(segment.extras), **near}

    @override
    def find(self, snapshot: Snapshot, query: str, vector: FloatArray | None, top_k: int) -> Hits:
        direction = self.direction(snapshot, query, vector)
        rows = None if snapshot.matching is None else np.flatnonzero(snapshot.matching)
        products = [part.prepared for part in snapshot.parts]
        return self.with_levels(best_by_product(snapshot, products, rows, direction, top_k), direction)


def best_by_product(
    snapshot: Snapshot,
    products: Sequence[Products],
    rows: IntArray | None,
    direction: FloatArray,
    top_k: int,
) -> Hits:
    """Return the best of some rows, by their product with a query's vector (d,).

    products: of the query with the rows of each part.
    rows: ascending; None for all.
    """
    every = ((part, None) for part in snapshot.parts)
    asked = every if rows is None else snapshot.split(rows)
    of_part = [
        _best_of_part(part, own, direction, top_k, its)
        for (part, own), its in zip(asked, products, strict=True)
    ]
    numbered = [own + first for (own, _), first in zip(of_part, snapshot.firsts.tolist(), strict=False)]
    rows, scores = np.concatenate(numbered), np.concatenate([scores for _, scores in of_part])
    best = top_rows(scores, top_k)
    return Hits(rows[best], scores[best], {"dense": scores[best]})


def _best_of_part(
    part: Part, rows: IntArray | None, direction: FloatArray, top_k: int, products: Products
) -> tuple[IntArray, FloatArray]:
    near = None
    if part.segment.near is not None:
        near = nearest.nearest_rows(part, direction, top_k, None if rows is None else part.mask(rows))
    return products.best(direction, top_k, rows) if near is None else near


class DenseIndex(DocumentIndex):
    """Chunks scored by cosine with the query.

    Every chunk is compared, unless `backend` names an index of faiss, such as "faiss:HNSW32@efSearch=64".
    Then each large segment of documents has one. It is built when the segment is first searched after a
    change or after `load`, unless you trust the one that was saved.
    """

    scheme_type = DenseScheme
