"""LlamaIndex and LangChain embedding objects as encoders. Imports neither framework."""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from precise_rag._progress import progress_bar
from precise_rag.encoded import encoded_rows
from precise_rag.tokens import estimate_token_counts, readable_texts
from precise_rag.types import FloatArray, IntArray

_SLICE = 1024
_METHODS = (
    ("get_text_embedding_batch", "get_query_embedding", "aget_query_embedding"),
    ("embed_documents", "embed_query", "aembed_query"),
)


def is_framework_embedding(source: object) -> bool:
    """Return whether an object has the embedding methods of LlamaIndex or LangChain."""
    return any(hasattr(source, many) and hasattr(source, one) for many, one, _ in _METHODS)


class FrameworkEncoder:
    """An encoder that uses a LlamaIndex or LangChain embedding object.

    The vectors are scaled to unit length. Token counts are estimates, because embedding objects do
    not give access to their tokenizer.
    """

    def __init__(self, embedding: Any) -> None:
        self._embedding = embedding
        self._methods = next(
            names for names in _METHODS if hasattr(embedding, names[0]) and hasattr(embedding, names[1])
        )

    @property
    def name(self) -> str:
        """The embedding object's class and model name."""
        model = getattr(self._embedding, "model_name", None) or getattr(self._embedding, "model", None)
        kind = type(self._embedding).__name__
        return f"{kind}:{model}" if isinstance(model, str) else kind

    @cached_property
    def dimension(self) -> int:
        """Length of a vector. The first call embeds one word to find out."""
        return int(self.encode(["dimension"]).shape[1])

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Encode n texts. Returns (n, d) float32 rows of unit length, in order."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        texts, encode = readable_texts(texts), getattr(self._embedding, self._methods[0])
        starts = progress_bar(range(0, len(texts), _SLICE), shown=show_progress, desc="encoding")
        slices = (list(texts[i : i + _SLICE]) for i in starts)
        return np.concatenate([self._rows(encode(part), len(part)) for part in slices])

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries with the embedding object's query method."""
        if not queries:
            return np.zeros((0, self.dimension), dtype=np.float32)
        encode = getattr(self._embedding, self._methods[1])
        vectors = [encode(query) for query in readable_texts(queries)]
        return self._rows(vectors, len(queries))

    async def aencode_queries(self, queries: Sequence[str]) -> FloatArray:
        """`encode_queries` by the embedding object's own asynchronous method, one query after the other."""
        encode = getattr(self._embedding, self._methods[2], None)
        if encode is None or not queries:
            return await asyncio.to_thread(self.encode_queries, queries)
        vectors = [await encode(query) for query in readable_texts(queries)]
        return self._rows(vectors, len(queries))

    def _rows(self, vectors: Any, n_texts: int) -> FloatArray:
        """The vectors of n texts, checked; the first ones tell the length of all."""
        known = self.__dict__.get("dimension")
        rows = encoded_rows(vectors, n_texts, source=self.name, dimension=known)
        self.__dict__["dimension"] = rows.shape[1]
        return rows

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Estimate the tokens of n texts. Returns (n,) int64."""
        return estimate_token_counts(texts)
