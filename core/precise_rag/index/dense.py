"""Dense search over chunks: exact, or by a faiss index."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from precise_rag.checks import check_choice, check_number
from precise_rag.encoded import encode_documents
from precise_rag.index.context import chunk_vectors
from precise_rag.index.faiss_rows import FaissBackend, FaissRows
from precise_rag.index.groups import Groups, Passages, check_passages, passage_ids
from precise_rag.index.index import DocumentIndex
from precise_rag.index.ranking import best_rows
from precise_rag.index.table import Columns, Part, Shard
from precise_rag.index.vectors import Products, VectorSettings, read_vectors, vector_columns
from precise_rag.index.view import Hits, View
from precise_rag.protocols import Encoder
from precise_rag.sentences.sentence_tables import tables_of
from precise_rag.sentences.trimming import trim_spans
from precise_rag.types import Document, FloatArray, IntArray, ScoreScale

EXACT_ROWS = 10_000
"""A shard with fewer rows has no faiss index: all of its rows are compared."""
_EXACT_SHARE = 0.1
"""If less than this share of rows may be found, all of these are compared, without the faiss index."""


@dataclass(frozen=True, kw_only=True)
class ChunkVectorSettings(VectorSettings):
    """Settings of indexes of chunks with vectors; see also `VectorSettings`.

    chunks: how sentences are grouped into chunks; see `Passages`.
    chunk_vectors: "encode" the text of each chunk; or, without encoding it, take the token-weighted
        "mean" of its sentences' vectors, or that mean weighted with the text around it ("context").
    alpha: weight of the chunk against the text around it (0 to 1); only for "context".
    """

    chunks: Passages = "100 tokens"
    chunk_vectors: Literal["encode", "mean", "context"] = "encode"
    alpha: float = 0.6

    def __post_init__(self) -> None:
        VectorSettings.__post_init__(self)
        check_passages("chunks", self.chunks)
        check_number("alpha", self.alpha, least=0, most=1)
        check_choice("chunk_vectors", self.chunk_vectors, ("encode", "mean", "context"))


@dataclass(frozen=True, kw_only=True)
class DenseSettings(ChunkVectorSettings):
    """Settings of DenseIndex; see also `ChunkVectorSettings`.

    backend: "numpy" compares every chunk; "faiss" with a factory string and search parameters, such as
        "faiss:IVF1024,SQ8@nprobe=16", builds an index of faiss; see `FaissBackend`.
    """

    backend: str = "numpy"

    def __post_init__(self) -> None:
        super().__post_init__()
        FaissBackend.of(self.backend)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """near: finds the nearest rows by faiss; None to compare them all."""

    products: Products
    near: FaissRows | None


def chunk_columns(
    documents: Sequence[Document], encoder: Encoder, settings: ChunkVectorSettings, show_progress: bool
) -> Iterator[Columns]:
    """Yield the columns of the chunks of each document."""
    needs_sentences = settings.chunk_vectors != "encode" or settings.chunks == "sentences"
    for document, table in tables_of(documents, encoder, show_progress, vectors=needs_sentences):
        groups = Groups.by_change(passage_ids(document, table, settings.chunks))
        spans = groups.spans(trim_spans(document.text, table.spans))
        n_tokens = np.bincount(groups.of_row, table.n_tokens, minlength=len(spans)).astype(np.int64)
        if table.vectors is None:
            vectors = encode_documents(encoder, [document.text[start:end] for start, end in spans])
        else:
            alpha = settings.alpha if settings.chunk_vectors == "context" else 1.0
            vectors = chunk_vectors(table.vectors, table.n_tokens, groups.starts, groups.ends, alpha=alpha)
        yield {"spans": spans, "n_tokens": n_tokens, **vector_columns(vectors, settings.precision)}


def best_by_product(view: View, rows: IntArray | None, direction: FloatArray, top_k: int) -> Hits:
    """Return the best of some rows, by their product with a query's vector (d,).

    view: its parts are prepared with `products`, and perhaps with `near`. rows: ascending; None for all.
    """
    asked = ((part, None) for part in view.parts) if rows is None else view.split(rows)
    of_part = [_best_of_part(part, own, direction, top_k) for part, own in asked]
    numbered = [own + first for (own, _), first in zip(of_part, view.firsts.tolist(), strict=False)]
    found, scores = np.concatenate(numbered), np.concatenate([scores for _, scores in of_part])
    best = best_rows(scores, top_k, lambda places: view.draws(found[places]))
    return Hits(found[best], scores[best], {"dense": scores[best]})


def _best_of_part(
    part: Part, rows: IntArray | None, direction: FloatArray, top_k: int
) -> tuple[IntArray, FloatArray]:
    """The `top_k` nearest of some rows of a part, perhaps with others, ascending, and their scores.

    rows: None for all.
    """
    n_rows, near = len(part.shard), getattr(part.prepared, "near", None)
    n_found = n_rows if rows is None else len(rows)
    if near is not None and n_found >= _EXACT_SHARE * n_rows:
        matching = None if rows is None else np.isin(np.arange(n_rows), rows)
        found, scores = near.best(direction, top_k, matching)
        if matching is None or len(found) == min(top_k, n_found):
            order = np.argsort(found)
            return found[order], scores[order]
    best: tuple[IntArray, FloatArray] = part.prepared.products.best(direction, top_k, rows)
    return best


class DenseIndex(DocumentIndex):
    """Chunks scored by cosine with the query.

    Every chunk is compared, unless `backend` names an index of faiss, such as "faiss:HNSW32@efSearch=64".
    Then each large shard has one, built when it is first searched after a change or a `load`.
    """

    kind: ClassVar[str] = "dense"
    score_scale: ClassVar[ScoreScale] = "cosine"
    _settings_type = DenseSettings
    _search_settings = frozenset({"backend"})

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._faiss = FaissBackend.of(self.settings.backend)
        if self._faiss is not None:
            self._faiss.empty(self.encoder.dimension)

    @override
    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        return chunk_columns(documents, self.encoder, self.settings, show_progress)

    @override
    def _prepare(self, shard: Shard) -> Any:
        if self._faiss is None:
            return _Prepared(Products.of(shard), None)
        near = None
        if len(shard) >= EXACT_ROWS:
            near = FaissRows.of(read_vectors(shard.columns, slice(None)), self._faiss)
        return _Prepared(Products(shard.columns), near)

    @override
    def _best(self, view: View, query: str, direction: FloatArray, top_k: int) -> Hits:
        rows = None if view.matching is None else np.flatnonzero(view.matching)
        return best_by_product(view, rows, direction, top_k)
