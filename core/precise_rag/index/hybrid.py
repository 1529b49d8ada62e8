"""Hybrid search: sentences scored by meaning and by word, at three scales."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, get_args

import numpy as np
from typing_extensions import override

from precise_rag._processes import side_by_side
from precise_rag.checks import check_choice, check_number
from precise_rag.index.bm25 import BM25Matrix, BM25Settings, bm25_scores, words_found
from precise_rag.index.context import GroupMeans
from precise_rag.index.groups import Groups, Passages, check_passages, passage_ids
from precise_rag.index.headings import Headings, heading_columns
from precise_rag.index.ranking import few_with, pooled, scaled
from precise_rag.index.sentence_index import Returns, Scores, SentenceIndex, sentence_columns
from precise_rag.index.table import Columns, Shard
from precise_rag.index.vectors import Products, VectorSettings
from precise_rag.index.view import View
from precise_rag.index.words import code_numbers, load_stop_words, word_columns, word_numbers
from precise_rag.protocols import Encoder
from precise_rag.sentences.sentence_tables import tables_of
from precise_rag.titles import titles_read
from precise_rag.types import BoolArray, Document, FloatArray, IntArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class HybridSettings(BM25Settings, VectorSettings):
    """Settings of HybridIndex; see also `BM25Settings` and `VectorSettings`.

    passages: the text that a sentence is scored with and that is returned around it; see `Passages`.
    surroundings: the same on a wider scale, for scores only; None to score without it.
    headings: whether the title and the headings above a sentence belong to its passage and surroundings,
        for scores only; see `precise_rag.titles` for the metadata that hold a title.
    alpha: weight of the sentence (0 to 1); passage and surroundings share the rest equally.
    dense_weight: weight of the dense scores (0 to 1); BM25 has the rest.
    adaptive: lower the weight of the dense scores for queries where no sentence has a much higher cosine than
        the others, as in a language that the encoder does not know; and that of BM25 where no text has
        many of the words, as in another language than the question's. Up to three sentences that alone
        have a code of the query, such as E4266, come first.
    pool: number of the best sentences of each kind of score that are scaled to [0, 1] and fused; at least
        `top_k`.
    returns: default of `returns` in searches; see `Returns`.
    """

    passages: Passages = "200 tokens"
    surroundings: Passages | None = "400 tokens"
    headings: bool = True
    alpha: float = 1 / 3
    dense_weight: float = 0.6
    adaptive: bool = True
    pool: int = 1_000
    returns: Returns = "mixed"

    def __post_init__(self) -> None:
        BM25Settings.__post_init__(self)
        VectorSettings.__post_init__(self)
        check_number("alpha", self.alpha, least=0, most=1)
        check_choice("returns", self.returns, get_args(Returns))
        check_passages("passages", self.passages)
        if self.surroundings is not None:
            check_passages("surroundings", self.surroundings)
        check_number("dense_weight", self.dense_weight, least=0, most=1)
        check_number("pool", self.pool, least=1, whole=True)

    def weights(self, scores: FloatArray, best: float, found: float) -> tuple[float, float]:
        """Weights of the dense scores and of BM25 for a query.

        scores, best: see `dense_share`. found: see `words_found`; where meaning says much, it counts.
        """
        dense = dense_share(scores, best) if self.adaptive else 1.0
        words = 1 - dense * (1 - found) if self.adaptive else 1.0
        return self.dense_weight * dense, (1 - self.dense_weight) * words


_NO_WEIGHT, _FULL_WEIGHT = 2.0, 4.0
"""Best z-scores of the cosines up to which the dense scores have no weight, and from which they have full
weight. Tuned on the languages of XQuAD; see docs/design.md."""
_LEAST_ROWS = 20_000
"""Sentences from which on meaning and words are scored at the same time."""
_FEWEST = 100
"""With fewer sentences the weight is not adapted: the best z-score cannot be large."""
SEARCH_SETTINGS = frozenset({"dense_weight", "adaptive", "pool", "returns"})
"""Settings that only searches read, in memory and in a database."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """means, wider: by vector and by words, of each scale above the sentence: passages and surroundings."""

    passages: Groups
    products: Products
    means: Sequence[GroupMeans]
    sentences: BM25Matrix
    wider: Sequence[BM25Matrix]
    headings: Headings | None


def hybrid_columns(
    documents: Sequence[Document], encoder: Encoder, settings: HybridSettings, show_progress: bool
) -> Iterator[Columns]:
    """The columns of the sentences of each document, and of the headings above them."""
    read = (
        words_and_vectors(document, table, settings)
        for document, table in tables_of(documents, encoder, show_progress)
    )
    if settings.headings:
        return heading_columns(documents, list(read), encoder, settings.stop_words, show_progress)
    return read


def words_and_vectors(document: Document, table: SentenceTable, settings: HybridSettings) -> Columns:
    """The columns of the sentences of one document; table: its sentences."""
    columns = sentence_columns(document, table, settings)
    if settings.surroundings is not None:
        columns["surroundings"] = passage_ids(document, table, settings.surroundings)
    texts = (document.text[start:end] for start, end in columns["spans"])
    return columns | word_columns(texts, settings.stop_words)


class _DenseSearch:
    """The dense scores of a shard for a query; `core`: (n,) cosines, see `Products.rough`."""

    def __init__(self, prepared: _Prepared, vector: FloatArray, alpha: float) -> None:
        self._products, self._means, self._vector = prepared.products, prepared.means, vector
        self._alpha = alpha
        self._headings = None if prepared.headings is None else prepared.headings.scores(vector)
        self.core = prepared.products.rough(vector)

    def scores(self) -> FloatArray:
        """(n,) dense score of each sentence."""
        wider = [means.scores(self.core, self._headings) for means in self._means]
        return weighted_scales(self._alpha, self.core, wider)

    def exact(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """(k,) cosines and dense scores of some rows, exactly."""
        if self._products.rough_columns is not None and len(rows):
            is_near = np.zeros(len(self.core), dtype=np.bool_)
            for groups in (means.groups for means in self._means):
                is_near[groups.members(np.unique(groups.of_row[rows]))[0]] = True
            near = np.flatnonzero(is_near)
            self.core[near] = self._products.of_rows(near, self._vector)
        wider = [means.scores_of(rows, self.core, self._headings) for means in self._means]
        return self.core[rows], weighted_scales(self._alpha, self.core[rows], wider)


def level_groups(shard: Shard) -> list[Groups]:
    """The groups of rows of each wider scale: passages, and surroundings if there are any."""
    owners = shard.owners(np.arange(len(shard)))
    names = [name for name in ("passage_spans", "surroundings") if name in shard.columns]
    return [Groups.by_change(shard.columns[name], owners) for name in names]


def _joined(arrays: Sequence[FloatArray]) -> FloatArray:
    """One array of several, without a copy if it is the only one."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def dense_share(scores: FloatArray, best: float) -> float:
    """Share (0 to 1) of their weight that dense scores keep for a query; 1 if there are few scores.

    scores: (n,) dense scores of all sentences, or of a random sample.
    best: the best score of all sentences.
    """
    if len(scores) < _FEWEST:
        return 1.0
    spread = float(scores.std())
    z_score = (best - float(scores.mean())) / spread if spread > 0 else 0.0
    return min(max((z_score - _NO_WEIGHT) / (_FULL_WEIGHT - _NO_WEIGHT), 0.0), 1.0)


def weighted_scales(alpha: float, sentence: FloatArray, wider: Sequence[FloatArray]) -> FloatArray:
    """(n,) scores of sentences and of the wider scales, added. alpha: weight of the sentence."""
    total = wider[0].copy()
    for scores in wider[1:]:
        total += scores
    total *= (1 - alpha) / len(wider)
    total += alpha * sentence
    return total


class HybridIndex(SentenceIndex):
    """Sentences scored by meaning and by word, each together with its passage and its surroundings.

    A dense score is `alpha * sentence + (1 - alpha) * mean(passage, surroundings)` of cosines with the
    query; passages and surroundings have the mean vector of their sentences and of the heading above them,
    and hold its words. A BM25 score is the same of BM25 scores, each scaled to [0, 1]. The best sentences by
    each kind of score are pooled; in the pool both are scaled to [0, 1], weighted and added. By default a
    search returns the passage of the best sentence, then single sentences.

    Only the order of fused scores has a meaning (`score_scale="rank"`). `Candidate.scores` has "dense"
    (the dense score), "core" (cosine of the sentence), "bm25" (of the sentence) and "bm25_passage".

    Source: ChunkRAG's hybrid retrieval. Differs: contexts, and adaptive weights instead of 0.5 and 0.5.
    """

    kind: ClassVar[str] = "hybrid"
    score_scale: ClassVar[ScoreScale] = "rank"
    _settings_type = HybridSettings
    _search_settings = SEARCH_SETTINGS | {"alpha"}

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        load_stop_words(self.settings.stop_words)  # raises an error here, not in a search

    @override
    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        return hybrid_columns(documents, self.encoder, self.settings, show_progress)

    @override
    def _reads_same(self, known: Document, given: Document) -> bool:
        above_same = not self.settings.headings or titles_read(known.metadata) == titles_read(given.metadata)
        return above_same and super()._reads_same(known, given)

    @override
    def _prepare(self, shard: Shard) -> Any:
        headings = Headings.of(shard)
        groups = level_groups(shard)
        return _Prepared(
            passages=groups[0],
            products=Products.of(shard),
            means=[GroupMeans.of(shard, f"means{i}", its, headings) for i, its in enumerate(groups)],
            sentences=BM25Matrix.of(shard, "sentences"),
            wider=[BM25Matrix.of(shard, f"level{i}", its, headings) for i, its in enumerate(groups)],
            headings=headings,
        )

    @override
    def _scores(self, view: View, query: str, vector: FloatArray, alpha: float, top_k: int) -> Scores:
        rows: Any = slice(None) if view.matching is None else np.flatnonzero(view.matching)
        by_meaning = partial(self._by_meaning, view, vector, alpha)
        by_word = partial(self._by_word, view, query, alpha, rows)
        if view.n_rows < _LEAST_ROWS:
            (searches, core, dense), (bm25, found, sentence, passage) = by_meaning(), by_word()
        else:
            (searches, core, dense), (bm25, found, sentence, passage) = side_by_side(by_meaning, by_word)
        pool = pooled(
            [dense[rows], bm25],
            max(self.settings.pool, top_k),
            lambda places: view.draws(places if view.matching is None else rows[places]),
        )
        has_code = self._with_codes(view, query, rows)
        pool = np.union1d(pool, np.flatnonzero(has_code))
        scored = pool if view.matching is None else rows[pool]
        own = (rows for _, rows in view.split(scored))
        exact = [search.exact(rows) for search, rows in zip(searches, own, strict=True)]
        core[scored], dense[scored] = (np.concatenate(arrays) for arrays in zip(*exact, strict=True))
        by_meaning, by_word = self.settings.weights(core[rows], float(core[rows].max()), found)
        fused = np.full(len(core), -np.inf, dtype=np.float32)
        fused[scored] = by_meaning * scaled(dense[scored]) + by_word * scaled(bm25[pool])
        fused[scored] += has_code[pool]
        return fused, {"dense": dense, "core": core, "bm25": sentence, "bm25_passage": passage}

    def _with_codes(self, view: View, query: str, rows: Any) -> BoolArray:
        """(n,) whether each of some rows has a code of the query that few of them have."""
        parts: list[BM25Matrix] = [part.prepared.sentences for part in view.parts]
        codes = code_numbers(query, self.settings.stop_words) if self.settings.adaptive else []
        found = (np.concatenate([part.having(code) for part in parts])[rows] for code in codes)
        return few_with(found, len(np.arange(view.n_rows)[rows]))

    def _by_meaning(
        self, view: View, vector: FloatArray, alpha: float
    ) -> "tuple[list[_DenseSearch], FloatArray, FloatArray]":
        """The searches of all parts, and (n,) cosines and dense scores of all sentences."""
        searches = [_DenseSearch(part.prepared, vector, alpha) for part in view.parts]
        core = _joined([search.core for search in searches])
        return searches, core, _joined([search.scores() for search in searches])

    def _by_word(
        self, view: View, query: str, alpha: float, rows: Any
    ) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """BM25 in context of some rows, `words_found`, and (n,) of each sentence and of its passage."""
        prepared: list[_Prepared] = [part.prepared for part in view.parts]
        alive = [part.rows for part in view.parts]
        numbers = word_numbers(query, self.settings.stop_words).tolist()
        terms = np.array(list(dict.fromkeys(numbers)), dtype=np.int64)
        of_sentences, weights = bm25_scores([one.sentences for one in prepared], alive, terms, self.settings)
        sentence = _joined(of_sentences)
        wider = []
        for place, means in enumerate(zip(*(one.means for one in prepared), strict=True)):
            texts = [one.wider[place] for one in prepared]
            of_texts, weights = bm25_scores(texts, alive, terms, self.settings)
            pairs = zip(of_texts, means, strict=True)
            wider.append(_joined([scores[its.groups.of_row] for scores, its in pairs]))
        bm25 = weighted_scales(alpha, scaled(sentence[rows]), [scaled(scores[rows]) for scores in wider])
        return bm25, words_found(wider[-1][rows], weights, self.settings), sentence, wider[0]
