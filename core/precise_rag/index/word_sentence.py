"""Recursive retrieval: keep the chunks that share a word with the query, then rank them by cosine."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from precise_rag.checks import check_number
from precise_rag.encoders.local import packaged_tokenizer
from precise_rag.index.bm25 import Postings, idf
from precise_rag.index.dense import ChunkVectorSettings, best_by_product, chunk_columns
from precise_rag.index.groups import Passages
from precise_rag.index.index import DocumentIndex
from precise_rag.index.ranking import fair_rows
from precise_rag.index.table import Columns, Shard, ragged
from precise_rag.index.vectors import Products
from precise_rag.index.view import Hits, View
from precise_rag.index.words import WordSettings, folded, load_stop_words
from precise_rag.protocols import Encoder
from precise_rag.tokens import readable_texts
from precise_rag.types import BoolArray, Document, FloatArray, IntArray, ScoreScale


@dataclass(frozen=True, kw_only=True)
class WordSentenceSettings(ChunkVectorSettings, WordSettings):
    """Settings of WordSentenceIndex; see also `ChunkVectorSettings` and `WordSettings`.

    chunks: how sentences are grouped into chunks; default: each sentence alone.
    min_overlap: distinct tokens that a chunk must share with the query (at least 1).
    max_candidates: maximum number of chunks compared by cosine: those with the largest sum of the
        idf of shared tokens; default: no maximum.
    """

    chunks: Passages = "sentences"
    min_overlap: int = 1
    max_candidates: int | None = None

    def __post_init__(self) -> None:
        ChunkVectorSettings.__post_init__(self)
        WordSettings.__post_init__(self)
        check_number("min_overlap", self.min_overlap, least=1, whole=True)
        check_number("max_candidates", self.max_candidates, least=1, whole=True, none="no limit")


@dataclass(frozen=True, slots=True)
class _Prepared:
    postings: Postings
    products: Products


class WordSentenceIndex(DocumentIndex):
    """Chunks that share a word with the query, scored by cosine.

    Words are the tokens of the default encoder in small letters, without stop words and punctuation. A
    common token lets almost every chunk pass the filter; `min_overlap` and `max_candidates` make searches
    faster. If no chunk shares a token with the query, a search returns nothing.

    Source: recursive retrieval, section III. Differs: the tokens are those of some fifty languages, in the
    paper those of BERT, which are English.
    """

    kind: ClassVar[str] = "word-sentence"
    score_scale: ClassVar[ScoreScale] = "cosine"
    _settings_type = WordSentenceSettings
    _search_settings = frozenset({"min_overlap", "max_candidates"})

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._tokenizer = packaged_tokenizer()
        stop_words = load_stop_words(self.settings.stop_words)
        self._is_content = _content_tokens(self._tokenizer, stop_words)
        left_out = "|".join(map(re.escape, sorted(stop_words)))
        self._stop_words = re.compile(rf"\b(?:{left_out})\b") if left_out else re.compile("(?!)")

    def candidate_rows(self, query: str) -> IntArray:
        """Rows that pass the word filter, ascending."""
        return self._passing(self._ready(), query)

    @override
    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        chunks = chunk_columns(documents, self.encoder, self.settings, show_progress)
        for document, columns in zip(documents, chunks, strict=True):
            tokens = self._tokens([document.text[start:end] for start, end in columns["spans"]])
            yield {**columns, **ragged("pieces", tokens, np.int32)}

    @override
    def _prepare(self, shard: Shard) -> Any:
        lengths = shard.columns["pieces.lengths"]
        rows = np.repeat(np.arange(len(lengths)), lengths)
        postings = Postings.of(shard.columns["pieces.values"], rows, len(lengths))
        return _Prepared(postings, Products.of(shard))

    @override
    def _best(self, view: View, query: str, direction: FloatArray, top_k: int) -> Hits:
        return best_by_product(view, self._passing(view, query), direction, top_k)

    def _passing(self, view: View, query: str) -> IntArray:
        """Return the rows that pass the word filter and match, ascending."""
        terms = np.unique(self._tokens([query])[0]).astype(np.int64)
        least = self.settings.min_overlap
        passes = np.concatenate(
            [part.prepared.postings.overlap(terms, least, len(part.shard)) for part in view.parts]
        )
        rows = np.flatnonzero(passes if view.matching is None else passes & view.matching)
        limit = self.settings.max_candidates
        if limit is None or len(rows) <= limit:
            return rows
        counts = [part.prepared.postings.frequencies(terms, part.rows) for part in view.parts]
        weights = idf(np.sum(counts, axis=0), sum(len(part) for part in view.parts))
        shared = np.zeros(view.n_rows, dtype=np.float32)  # sum of the idf of the terms in each row
        for part, its in view.slices():
            for term, weight in zip(terms.tolist(), weights, strict=True):
                shared[its][part.prepared.postings.rows_of(term)] += weight
        return rows[fair_rows(shared[rows], limit, lambda places: view.draws(rows[places]))]

    def _tokens(self, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """The tokens of each text without stop words, punctuation and special tokens."""
        texts = [self._stop_words.sub(" ", folded(text)) for text in readable_texts(texts)]
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids = [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]
        return [tokens[self._is_content[tokens]] for tokens in ids]


@lru_cache(maxsize=8)
def _content_tokens(tokenizer: Any, stop_words: frozenset[str]) -> BoolArray:
    """(n_tokens,) whether each token of the vocabulary is a content token; see `_tokens`."""
    is_content = np.zeros(tokenizer.get_vocab_size(), dtype=bool)
    left_out = stop_words | {str(token) for token in tokenizer.get_added_tokens_decoder().values()}
    for token, number in tokenizer.get_vocab().items():
        is_content[number] = token.lstrip("\u2581") not in left_out and any(c.isalnum() for c in token)
    return is_content
