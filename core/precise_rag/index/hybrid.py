"""Sentences scored by meaning and by word at once, each at three scales."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.arrays.bm25_matrix import BM25Matrix, BM25Settings, bm25_matrix
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.context import GroupMeans
from precise_rag.index.arrays.fusion import fuse, min_max, standing_out
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import Passages, check_passages, passage_ids
from precise_rag.index.arrays.products import Products, load_products
from precise_rag.index.arrays.vectors import VectorSettings
from precise_rag.index.arrays.words import Lexicon
from precise_rag.index.base import View
from precise_rag.index.sentence_base import Returns, SentenceIndex, check_alpha, check_returns
from precise_rag.protocols import Encoder
from precise_rag.types import Document, FloatArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class HybridSettings(BM25Settings, VectorSettings):
    """passages: what a sentence is scored together with, and what is returned around the best one.
    surroundings: the same at a wider scale, or None. alpha: weight of the sentence alone; passage and
    surroundings share the rest. dense_weight: weight of the dense scores against BM25's. adaptive: give
    the dense scores less where no sentence stands out by them, as in a language that the encoder does
    not know. pool: how many of the best sentences of each are stretched to [0, 1] and fused. returns:
    what a search gives where it does not say."""

    passages: Passages = "200 tokens"
    surroundings: Passages | None = "400 tokens"
    alpha: float = 1 / 3
    dense_weight: float = 0.6
    adaptive: bool = True
    pool: int = 1_000
    returns: Returns = "mixed"

    def __post_init__(self) -> None:
        BM25Settings.__post_init__(self)
        VectorSettings.__post_init__(self)
        check_alpha(self.alpha)
        check_returns(self.returns)
        for passages in self.levels:
            check_passages(passages)
        if not 0 <= self.dense_weight <= 1 or self.pool < 1:
            raise InputError(
                f"dense_weight is {self.dense_weight} and pool is {self.pool}; expected a weight from 0 to 1 "
                "and a pool of at least 1"
            )

    @property
    def levels(self) -> tuple[Passages, ...]:
        """The scales above the sentence."""
        return (self.passages,) if self.surroundings is None else (self.passages, self.surroundings)


_LOST, _SURE = 2.0, 4.0
"""Standard deviations of the best cosine above the mean: up to the first the dense scores count nothing,
from the second on their whole weight. MiniLM on XQuAD: English 6.2, German 4.2, Spanish 3.3, Arabic 2.1."""
_TOO_FEW = 100
"""Sentences among which nothing can stand out far."""


@dataclass(frozen=True, slots=True)
class _Level:
    means: GroupMeans
    bm25: BM25Matrix

    def by_word(self, terms: Any) -> FloatArray:
        return self.bm25.scores(terms)[self.means.groups.of_row]


@dataclass(frozen=True, slots=True)
class _Prepared:
    groups: Groups
    sentences: BM25Matrix
    levels: Sequence[_Level]
    products: Products


class HybridIndex(SentenceIndex):
    """Dense and BM25 scores of each sentence, its passage and its surroundings, fused.

    Each kind is `alpha * sentence + (1 - alpha) * mean of passage and surroundings`: for dense
    search the cosines of the sentence and of the wider texts' mean vectors, which cost no encoding; for BM25
    scores stretched to [0, 1] at each scale. Both are then fused by min-max over the union of
    their best (ChunkRAG fuses at 0.5/0.5 without context), the dense ones at their full weight where
    the best sentence stands out by them. By default the best sentence brings its
    whole passage and the others come alone: see docs/decisions for the measurements behind it.

    The fused score orders candidates and means nothing else (`score_scale="rank"`); `Candidate.scores`
    keeps "dense" (cosines in context), "core" (cosine of the sentence alone), "bm25" (sentence) and
    "bm25_passage".
    """

    kind = "hybrid"
    settings_type: ClassVar[type] = HybridSettings
    score_scale: ClassVar[ScoreScale] = "rank"
    search_settings = frozenset({"alpha", "dense_weight", "adaptive", "pool", "returns", "backend"})
    settings: HybridSettings

    @property
    def returns(self) -> Returns:
        """What `search` gives where the caller does not say."""
        return self.settings.returns

    def __init__(self, encoder: Encoder | None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._lexicon = Lexicon(self.settings.stop_words)

    def _columns(self, document: Document, table: SentenceTable) -> dict[str, Any]:
        columns = super()._columns(document, table)
        if self.settings.surroundings is not None:
            columns["surroundings"] = passage_ids(document, table, self.settings.surroundings)
        texts = (document.text[start:end] for start, end in columns["spans"])
        return columns | self._lexicon.columns(texts)

    def _prepare(self, collection: Collection) -> Any:
        columns = collection.columns
        owners = collection.owners(np.arange(len(collection)))
        keys = [columns[name] for name in ("passage_spans", "surroundings") if name in columns]
        levels = []
        for place, groups in enumerate(Groups.by_change(key, owners) for key in keys):
            ready = self._saved(collection, f"level{place}")
            means = GroupMeans.of(columns, groups, self._saved(collection, f"means{place}").get("norms"))
            levels.append(
                _Level(means, bm25_matrix(columns, len(self._lexicon), self.settings, groups, ready))
            )
        ready = self._saved(collection, "sentences")
        sentences = bm25_matrix(columns, len(self._lexicon), self.settings, ready=ready)
        products = load_products(columns, self.settings.backend)
        return _Prepared(levels[0].means.groups, sentences, levels, products)

    def _scores(
        self, view: View, query: str, vector: FloatArray, alpha: float
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        prepared: _Prepared = view.prepared
        terms = self._lexicon.terms(query)
        core = prepared.products.all(vector)
        sentence = prepared.sentences.scores(terms)
        passages = [level.by_word(terms) for level in prepared.levels]
        dense = _weighed(alpha, core, [level.means.scores(core) for level in prepared.levels])
        by_word = _weighed(alpha, min_max(sentence), [min_max(passage) for passage in passages])
        weight = self.settings.dense_weight
        if self.settings.adaptive and len(core) >= _TOO_FEW:
            weight *= min(max((standing_out(core) - _LOST) / (_SURE - _LOST), 0.0), 1.0)
        fused = fuse([dense, by_word], [weight, 1 - weight], self.settings.pool)
        return fused, {"dense": dense, "core": core, "bm25": sentence, "bm25_passage": passages[0]}

    def _manifest(self) -> dict[str, Any]:
        return {**super()._manifest(), "vocabulary": self._lexicon.words()}

    def _extras(self) -> Columns:
        if not len(self._collection):
            return {}
        prepared: _Prepared = self._ready(top_k=1).prepared
        extras = {f"sentences.{name}": array for name, array in prepared.sentences.arrays.items()}
        for place, level in enumerate(prepared.levels):
            extras |= {f"level{place}.{name}": array for name, array in level.bm25.arrays.items()}
            extras[f"means{place}.norms"] = level.means.norms
        return extras

    def _restore(self, manifest: Mapping[str, Any], extras: Columns) -> None:
        self._lexicon = Lexicon(self.settings.stop_words, manifest["vocabulary"])


def _weighed(alpha: float, sentence: FloatArray, wider: Sequence[FloatArray]) -> FloatArray:
    return alpha * sentence + (1 - alpha) / len(wider) * sum(wider[1:], wider[0])
