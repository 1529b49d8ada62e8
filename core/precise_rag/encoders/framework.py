"""LlamaIndex and LangChain embedding objects as encoders, and the base of such. Imports neither framework."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Sequence
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


class CallingEncoder:
    """Base of encoders that call the code or service of others: what these return is checked.

    Vectors are scaled to unit length. Token counts are estimates, because nothing tells the tokenizer.
    """

    name: str

    @cached_property
    def dimension(self) -> int:
        """Length of a vector. The first call embeds one word to find out, if nothing tells."""
        return int(self.encode(["dimension"]).shape[1])

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Encode n texts. Returns (n, d) float32 rows of unit length, in order."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors: list[FloatArray] = []
        with progress_bar(shown=show_progress, total=len(texts), desc="encoding", unit="text") as progress:
            for batch in self._batches(readable_texts(texts)):
                vectors.append(self._encoded(batch))
                progress.update(len(batch))
        return np.concatenate(vectors)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        return (list(texts[first : first + _SLICE]) for first in range(0, len(texts), _SLICE))

    @abstractmethod
    def _encoded(self, batch: list[str]) -> FloatArray:
        """The vectors of one batch, by `_rows`."""

    def _rows(self, vectors: Any, n_texts: int) -> FloatArray:
        """The vectors of n texts, checked; the first ones tell the length of all."""
        known = self.__dict__.get("dimension")
        rows = encoded_rows(vectors, n_texts, source=self.name, dimension=known)
        self.__dict__["dimension"] = rows.shape[1]
        return rows

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Estimate the tokens of n texts. Returns (n,) int64."""
        return estimate_token_counts(texts)


class FrameworkEncoder(CallingEncoder):
    """An encoder that uses a LlamaIndex or LangChain embedding object; see `CallingEncoder`.

    name: (attribute) the embedding object's class and model name.
    """

    def __init__(self, embedding: Any) -> None:
        self._embedding = embedding
        self._methods = next(
            names for names in _METHODS if hasattr(embedding, names[0]) and hasattr(embedding, names[1])
        )
        model = getattr(embedding, "model_name", None) or getattr(embedding, "model", None)
        kind = type(embedding).__name__
        self.name = f"{kind}:{model}" if isinstance(model, str) else kind

    def _encoded(self, batch: list[str]) -> FloatArray:
        return self._rows(getattr(self._embedding, self._methods[0])(batch), len(batch))

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries with the embedding object's query method."""
        if not queries:
            return np.zeros((0, self.dimension), dtype=np.float32)
        encode = getattr(self._embedding, self._methods[1])
        return self._rows([encode(query) for query in readable_texts(queries)], len(queries))

    async def aencode_queries(self, queries: Sequence[str]) -> FloatArray:
        """`encode_queries` by the embedding object's own asynchronous method, one query after the other."""
        encode = getattr(self._embedding, self._methods[2], None)
        if encode is None or not queries:
            return await asyncio.to_thread(self.encode_queries, queries)
        return self._rows([await encode(query) for query in readable_texts(queries)], len(queries))
