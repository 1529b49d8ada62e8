"""ParetoRAG: search by sentence, each weighed together with its context."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.arrays.context import SentenceContext
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import Passages, check_passages
from precise_rag.index.arrays.products import Products, load_products
from precise_rag.index.arrays.vectors import VectorSettings, read_vectors
from precise_rag.index.base import Hits, View
from precise_rag.index.sentence_base import SentenceIndex, check_alpha
from precise_rag.types import Candidate, Document, FloatArray, IntArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class ContextSettings(VectorSettings):
    """alpha: weight of the sentence against its context. context: "mean" of the other sentences'
    vectors, or "encode" them again (the paper). similarity: "cosine", or "dot" of the plain weighted
    sum (the paper). passages: what a context is made of."""

    alpha: float = 0.6
    context: Literal["mean", "encode"] = "mean"
    similarity: Literal["cosine", "dot"] = "cosine"
    passages: Passages = "paragraphs"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.alpha)
        if self.context not in ("mean", "encode"):
            raise InputError(f"context is {self.context!r}; expected 'mean' or 'encode'")
        if self.similarity not in ("cosine", "dot"):
            raise InputError(f"similarity is {self.similarity!r}; expected 'cosine' or 'dot'")
        check_passages(self.passages)


class SentenceContextIndex(SentenceIndex):
    """Sentences scored by `alpha * core + (1 - alpha) * context` (ParetoRAG, section 3).

    The context of a sentence is the rest of its passage; one that is alone in its passage is scored
    by itself. Defaults differ from the paper (alpha 0.8, encoded contexts, dot product), which
    `alpha=0.8, context="encode", similarity="dot"` gives; see docs/decisions for what was measured.
    """

    kind = "sentence-context"
    settings_type: ClassVar[type] = ContextSettings
    score_scale: ClassVar[ScoreScale] = "cosine"
    search_settings = frozenset({"alpha", "similarity", "backend"})
    settings: ContextSettings

    def weighted_vectors(self, alpha: float | None = None) -> Iterator[tuple[Candidate, FloatArray]]:
        """Every sentence with its weighted vector (d,), for a vector store of the caller's.

        A similarity search of such a store for the query's vector gives this index's ranking.
        """
        if not len(self):
            return iter(())
        view = self._ready(top_k=1)
        vectors = view.prepared.context.vectors(
            read_vectors(view.collection.columns, slice(None)),
            self._alpha(alpha),
            normalise=self.settings.similarity == "cosine",
        )
        rows = np.arange(len(vectors))
        pieces = self._candidates(view, Hits(rows, np.zeros(len(rows), dtype=np.float32)))
        return zip(pieces, vectors, strict=True)

    def _columns(self, document: Document, table: SentenceTable) -> dict[str, Any]:
        columns = super()._columns(document, table)
        if self.settings.context == "encode":
            columns["context"] = self._encoded_contexts(document, columns["spans"], columns["passage_spans"])
        return columns

    def _encoded_contexts(self, document: Document, spans: IntArray, passages: IntArray) -> FloatArray:
        assert self.encoder is not None
        texts = [document.text[start:end] for start, end in spans]
        rows = np.zeros((len(texts), self.encoder.dimension), dtype=np.float32)
        starts = [*Groups.by_change(passages).starts.tolist(), len(texts)]
        others = {
            i: " ".join(texts[j] for j in range(first, last) if j != i)
            for first, last in pairwise(starts)
            if last - first > 1
            for i in range(first, last)
        }
        if others:
            rows[list(others)] = self.encoder.encode(list(others.values()))
        return rows

    def _prepare(self, collection: Collection) -> Any:
        columns = collection.columns
        groups = Groups.by_change(columns["passage_spans"], collection.owners(np.arange(len(collection))))
        products = load_products(columns, self.settings.backend)
        if "context" not in columns:
            return _Prepared(groups, SentenceContext.of_means(columns, groups), products)
        encoded = columns["context"]
        context = SentenceContext.of_vectors(columns, groups, encoded)
        return _Prepared(
            groups, context, products, load_products({"vectors": encoded}, self.settings.backend)
        )

    def _scores(
        self, view: View, query: str, vector: FloatArray, alpha: float
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """(n,) scores of all sentences, and the raw scores they were made of."""
        prepared: _Prepared = view.prepared
        core = prepared.products.all(vector)
        encoded = prepared.encoded.all(vector) if prepared.encoded else None
        normalise = self.settings.similarity == "cosine"
        scores = prepared.context.scores(core, alpha, encoded, normalise=normalise)
        return scores, {"dense": scores, "core": core}


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Passages, contexts and vectors of all sentences, and the contexts' own vectors if they have any."""

    groups: Groups
    context: SentenceContext
    products: Products
    encoded: Products | None = None
