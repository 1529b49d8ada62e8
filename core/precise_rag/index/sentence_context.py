"""ParetoRAG: search for sentences, each scored together with its context."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from precise_rag.checks import check_choice, check_number
from precise_rag.encoded import encode_documents
from precise_rag.index.context import SentenceContexts
from precise_rag.index.groups import Groups, Passages, check_passages
from precise_rag.index.sentence_index import Scores, SentenceIndex, sentence_columns
from precise_rag.index.table import Columns, Shard
from precise_rag.index.vectors import VectorSettings, dot, read_vectors
from precise_rag.index.view import Hits, View
from precise_rag.sentences.sentence_tables import tables_of
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale
from precise_rag.vectors import dots


@dataclass(frozen=True, kw_only=True)
class ContextSettings(VectorSettings):
    """Settings of SentenceContextIndex; see also `VectorSettings`.

    alpha: weight of a sentence against its context (0 to 1).
    context: "mean" of the vectors of the passage's other sentences, or "encode" their text (the paper).
    similarity: "cosine" with the weighted vector, or its "dot" product without normalisation (the paper).
    passages: how sentences are grouped into passages; see `Passages`.
    """

    alpha: float = 0.6
    context: Literal["mean", "encode"] = "mean"
    similarity: Literal["cosine", "dot"] = "cosine"
    passages: Passages = "paragraphs"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha, least=0, most=1)
        check_choice("context", self.context, ("mean", "encode"))
        check_choice("similarity", self.similarity, ("cosine", "dot"))
        check_passages("passages", self.passages)


class SentenceContextIndex(SentenceIndex):
    """Sentences scored by `alpha * core + (1 - alpha) * context`.

    The core is the sentence; its context is the rest of its passage. A sentence that is alone in its
    passage has no context.

    Source: ParetoRAG, section 3. Differs: the defaults; `alpha=0.8, context="encode",
    similarity="dot"` is the paper.
    """

    kind: ClassVar[str] = "sentence-context"
    score_scale: ClassVar[ScoreScale] = "cosine"
    _settings_type = ContextSettings
    _search_settings = frozenset({"alpha", "similarity"})

    def weighted_vectors(self) -> Iterator[tuple[Candidate, FloatArray]]:
        """Yield every sentence with its weighted vector (d,), for your own vector store.

        A search of that store with the query's vector gives the ranking of this index.
        """
        if not len(self):
            return
        view, alpha = self._ready(), self.settings.alpha
        normalise = self.settings.similarity == "cosine"
        for part, rows in view.slices():
            core, contexts = read_vectors(part.shard.columns, slice(None)), part.prepared
            vectors = contexts.weighted(core, contexts.encoded, alpha, normalise=normalise)
            alive = np.arange(len(vectors)) if part.rows is None else np.flatnonzero(part.rows)
            hits = Hits(alive + rows.start, np.zeros(len(alive), dtype=np.float32))
            yield from zip(view.candidates(hits, self.score_scale), vectors[alive], strict=True)

    @override
    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        for document, table in tables_of(documents, self.encoder, show_progress):
            columns = sentence_columns(document, table, self.settings)
            if self.settings.context == "encode":
                columns["context"] = self._encoded_contexts(document, columns)
            yield columns

    def _encoded_contexts(self, document: Document, columns: Columns) -> FloatArray:
        texts = [document.text[start:end] for start, end in columns["spans"]]
        rows = np.zeros((len(texts), self.encoder.dimension), dtype=np.float32)
        others = {
            i: " ".join(texts[j] for j in range(first, last) if j != i)
            for first, last in pairwise(Groups.by_change(columns["passage_spans"]).offsets.tolist())
            if last - first > 1
            for i in range(first, last)
        }
        rows[list(others)] = encode_documents(self.encoder, list(others.values()))
        return rows

    @override
    def _prepare(self, shard: Shard) -> Any:
        columns = shard.columns
        passages = Groups.by_change(columns["passage_spans"], shard.owners(np.arange(len(shard))))
        if "context" in columns:
            return SentenceContexts.of_vectors(columns, passages, columns["context"])
        return SentenceContexts.of_means(columns, passages)

    @override
    def _scores(self, view: View, query: str, vector: FloatArray, alpha: float, top_k: int) -> Scores:
        normalise = self.settings.similarity == "cosine"
        of_part = []
        for part in view.parts:
            contexts: SentenceContexts = part.prepared
            core = dot(part.shard.columns, vector)
            encoded = None if contexts.encoded is None else dots(contexts.encoded, vector)
            of_part.append((contexts.weighted(core, encoded, alpha, normalise=normalise), core))
        scores, core = (np.concatenate(arrays) for arrays in zip(*of_part, strict=True))
        if view.matching is not None:
            scores[~view.matching] = -np.inf
        return scores, {"dense": scores, "core": core}
