"""Sentences scored by meaning and by word at once, both in context."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from precise_rag.errors import InputError
from precise_rag.index.base import View
from precise_rag.index.collection import Collection
from precise_rag.index.fusion import fuse, min_max
from precise_rag.index.lexical import BM25, BM25Settings, bm25, word_columns
from precise_rag.index.sentence_context import ContextSettings, Prepared, SentenceContextIndex
from precise_rag.index.words import Vocabulary, words
from precise_rag.protocols import Encoder
from precise_rag.types import Document, FloatArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class HybridSettings(ContextSettings, BM25Settings):
    """As for the two parts. dense_weight: weight of the dense score against BM25's. pool: how many
    of the best of each part are stretched to [0, 1] together and fused."""

    dense_weight: float = 0.5
    pool: int = 1_000

    def __post_init__(self) -> None:
        ContextSettings.__post_init__(self)
        BM25Settings.__post_init__(self)
        if not 0 <= self.dense_weight <= 1 or self.pool < 1:
            raise InputError(
                f"dense_weight is {self.dense_weight} and pool is {self.pool}; expected a weight from 0 to 1 "
                "and a pool of at least 1"
            )


@dataclass(frozen=True, slots=True)
class _Prepared(Prepared):
    sentences: BM25
    passages: BM25


class HybridIndex(SentenceContextIndex):
    """Dense and BM25 scores of each sentence, both weighed with its context, fused at 0.5/0.5.

    BM25 in context is `alpha * sentence + (1 - alpha) * passage`, min-max each. The fused score
    orders candidates and means nothing else (`score_scale="rank"`); `Candidate.scores` keeps "dense"
    (cosine in context), "core" (cosine of the sentence alone), "bm25" and "bm25_passage".
    """

    kind = "hybrid"
    settings_type: ClassVar[type] = HybridSettings
    score_scale: ClassVar[ScoreScale] = "rank"
    settings: HybridSettings

    def __init__(self, encoder: Encoder | None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._vocabulary = Vocabulary()

    def _columns(self, document: Document, table: SentenceTable) -> dict[str, Any]:
        columns = super()._columns(document, table)
        texts = (document.text[start:end] for start, end in columns["spans"])
        return columns | word_columns(texts, self._vocabulary)

    def _prepare(self, collection: Collection) -> Any:
        base = super()._prepare(collection)
        n_terms = len(self._vocabulary)
        sentences = bm25(collection.columns, n_terms, self.settings)
        passages = bm25(collection.columns, n_terms, self.settings, base.groups)
        return _Prepared(base.groups, base.context, sentences, passages)

    def _scores(
        self, view: View, query: str, vector: FloatArray, alpha: float
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        dense, parts = super()._scores(view, query, vector, alpha)
        prepared: _Prepared = view.prepared
        terms = self._vocabulary.numbers(words(query))
        sentence = prepared.sentences.scores(terms)
        passage = prepared.passages.scores(terms)
        by_word = alpha * min_max(sentence) + (1 - alpha) * min_max(passage)[prepared.groups.of_row]
        weight = self.settings.dense_weight
        fused = fuse([dense, by_word], [weight, 1 - weight], self.settings.pool)
        return fused, {**parts, "bm25": sentence, "bm25_passage": passage[prepared.groups.of_row]}

    def _manifest(self) -> dict[str, Any]:
        return {**super()._manifest(), "vocabulary": list(self._vocabulary)}

    def _restore(self, manifest: Mapping[str, Any]) -> None:
        self._vocabulary = Vocabulary(manifest["vocabulary"])
