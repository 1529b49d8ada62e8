"""ParetoRAG: search by sentence, each weighed together with its context."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.base import DocumentIndex, Hits, View, top_rows
from precise_rag.index.collection import Collection, Columns
from precise_rag.index.context import Groups, SentenceContext
from precise_rag.index.passages import Passages, check_passages, passage_ids, passage_spans
from precise_rag.index.pieces import best_of_groups, merged, trimmed, widened, within
from precise_rag.types import (
    Candidate,
    Document,
    FloatArray,
    IntArray,
    ScoreScale,
    SentenceTable,
)

Unit = Literal["sentence", "passage"]


@dataclass(frozen=True, kw_only=True)
class ContextSettings:
    """alpha: weight of the sentence against its context. context: "mean" of the other sentences'
    vectors, or "encode" them again (the paper). similarity: "cosine", or "dot" of the plain weighted
    sum (the paper). passages: what a context is made of."""

    alpha: float = 0.6
    context: Literal["mean", "encode"] = "mean"
    similarity: Literal["cosine", "dot"] = "cosine"
    passages: Passages = "paragraphs"

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if self.context not in ("mean", "encode"):
            raise InputError(f"context is {self.context!r}; expected 'mean' or 'encode'")
        if self.similarity not in ("cosine", "dot"):
            raise InputError(f"similarity is {self.similarity!r}; expected 'cosine' or 'dot'")
        check_passages(self.passages)


def check_alpha(alpha: float) -> float:
    """alpha itself. Raises InputError unless it is a weight."""
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha is {alpha}; expected 0 (context alone) to 1 (sentence alone)")
    return alpha


class SentenceContextIndex(DocumentIndex):
    """Sentences scored by `alpha * core + (1 - alpha) * context` (ParetoRAG, section 3).

    The context of a sentence is the rest of its passage; one that is alone in its passage is scored
    by itself. Defaults differ from the paper (alpha 0.8, encoded contexts, dot product), which
    `alpha=0.8, context="encode", similarity="dot"` gives; see docs/decisions for what was measured.
    """

    kind = "sentence-context"
    settings_type: ClassVar[type] = ContextSettings
    score_scale: ClassVar[ScoreScale] = "cosine"
    settings: ContextSettings

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        vector: FloatArray | None = None,
        alpha: float | None = None,
        returns: Unit = "sentence",
        merge_adjacent: bool = False,
        max_tokens: int | None = None,
    ) -> list[Candidate]:
        """At most `top_k` candidates, best first.

        vector: (d,) the query's own vector, where the caller has it. alpha: another one for this
        query; nothing is encoded again. returns: "sentence", or the "passage" around it, which
        scores like its best sentence. merge_adjacent: neighbouring sentences of one passage come
        back as one piece. max_tokens: pieces that would exceed it together are left out.
        """
        if returns not in ("sentence", "passage"):
            raise InputError(f"returns is {returns!r}; expected 'sentence' or 'passage'")
        view = self._ready(top_k)
        alpha = self.settings.alpha if alpha is None else check_alpha(alpha)
        scores, parts = self._scores(view, query, self._query_vector(query, vector), alpha)
        if returns == "sentence":
            rows = top_rows(scores, top_k)
        else:
            rows = best_of_groups(scores, view.prepared.groups, top_k)
        hits = Hits.of(rows, scores, parts)
        candidates = self._candidates(view, hits)
        if returns == "passage":
            candidates = widened(candidates, view, view.prepared.groups, hits.rows)
        if merge_adjacent:
            candidates = merged(candidates, view.collection.documents)
        return candidates if max_tokens is None else within(candidates, max_tokens)

    def weighted_vectors(self, alpha: float | None = None) -> Iterator[tuple[Candidate, FloatArray]]:
        """Every sentence with its weighted vector (d,), for a vector store of the caller's.

        A similarity search of such a store for the query's vector gives this index's ranking.
        """
        view = self._ready(top_k=1)
        vectors = view.prepared.context.vectors(
            view.collection.columns["vectors"],
            self.settings.alpha if alpha is None else alpha,
            normalise=self.settings.similarity == "cosine",
        )
        rows = np.arange(len(vectors))
        pieces = self._candidates(view, Hits(rows, np.zeros(len(rows), dtype=np.float32)))
        return zip(pieces, vectors, strict=True)

    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        for document, table in self._tables(documents, show_progress):
            yield self._columns(document, table)

    def _columns(self, document: Document, table: SentenceTable) -> dict[str, Any]:
        spans = trimmed(document.text, table.spans)
        ids = passage_ids(document, table, self.settings.passages)
        columns = {
            "spans": spans,
            "n_tokens": table.n_tokens,
            "vectors": table.vectors,
            "passage_spans": passage_spans(spans, ids),
        }
        if self.settings.context == "encode":
            columns["context"] = self._encoded_contexts(document, spans, ids)
        return columns

    def _encoded_contexts(self, document: Document, spans: IntArray, ids: IntArray) -> FloatArray:
        assert self.encoder is not None
        texts = [document.text[start:end] for start, end in spans]
        rows = np.zeros((len(texts), self.encoder.dimension), dtype=np.float32)
        starts = np.append(np.flatnonzero(np.diff(ids, prepend=-1)), len(ids))
        others = {
            i: " ".join(texts[j] for j in range(first, last) if j != i)
            for first, last in pairwise(starts.tolist())
            if last - first > 1
            for i in range(first, last)
        }
        if others:
            rows[list(others)] = self.encoder.encode(list(others.values()))
        return rows

    def _prepare(self, collection: Collection) -> Any:
        columns = collection.columns
        groups = Groups.by_change(columns["passage_spans"], collection.owners(np.arange(len(collection))))
        return Prepared(groups, sentence_context(columns, groups))

    def _scores(
        self, view: View, query: str, vector: FloatArray, alpha: float
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """(n,) scores of all sentences, and the raw scores they were made of."""
        core = view.collection.columns["vectors"] @ vector
        normalise = self.settings.similarity == "cosine"
        scores = view.prepared.context.scores(core, vector, alpha, normalise=normalise)
        return scores, {"dense": scores, "core": core}

    def _hits(self, view: View, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        scores, parts = self._scores(view, query, self._query_vector(query, vector), self.settings.alpha)
        return Hits.of(top_rows(scores, top_k), scores, parts)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Passages and contexts of all sentences."""

    groups: Groups
    context: SentenceContext


def sentence_context(columns: Columns, groups: Groups) -> SentenceContext:
    """Contexts from the rows themselves, or as they were encoded."""
    vectors, n_tokens = columns["vectors"], columns["n_tokens"]
    if "context" in columns:
        return SentenceContext.of_vectors(vectors, groups, n_tokens, columns["context"])
    return SentenceContext.of_means(vectors, groups, n_tokens)
