"""Embeddings from OpenAI or a server with the same protocol."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import PerProcess, Shared, progress_bar
from precise_rag.encoders.rows import encoded_rows
from precise_rag.errors import ModelError
from precise_rag.tokens import estimate_token_counts
from precise_rag.types import FloatArray, IntArray

_MAX_TEXTS, _MAX_TOKENS = 2_048, 200_000
"""Limits of one request. The tokens are below OpenAI's limit because they are estimates."""


class OpenAIEncoder(Shared):
    """An encoder that calls an OpenAI-compatible embeddings server.

    model: the model's name.
    dimensions: length of the vectors; default: the model's own.
    base_url: the server's address; default: OPENAI_BASE_URL, or OpenAI.
    api_key: default: OPENAI_API_KEY.
    timeout: seconds to wait for one request.
    max_retries: how often a failed request is repeated.
    Token counts are estimates. A pickle has no key: the key of an unpickled encoder is OPENAI_API_KEY.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        dimensions: int | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
    ) -> None:
        self._model = model
        self._dimensions = dimensions
        self._client_options = {
            "base_url": base_url,
            "api_key": api_key,
            "timeout": timeout,
            "max_retries": max_retries,
        }
        self._connection: PerProcess[Any] = PerProcess()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client_options": {**self._client_options, "api_key": None}}

    @property
    def name(self) -> str:
        """The name for `load_encoder`: "openai:model" or "openai:model/dimensions"."""
        return f"openai:{self._model}" + (f"/{self._dimensions}" if self._dimensions else "")

    @cached_property
    def dimension(self) -> int:
        """Length of a vector. The first call asks the server if `dimensions` was not given."""
        return self._dimensions or int(self.encode(["dimension"]).shape[1])

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Encode n texts. Returns (n, d) float32 rows of unit length, in order.

        Raises ModelError if the request fails.
        """
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors: list[list[float]] = []
        with progress_bar(shown=show_progress, total=len(texts), desc="encoding", unit="text") as progress:
            for batch in self._batches(texts):
                vectors += self._request(batch)
                progress.update(len(batch))
        return encoded_rows(vectors, source=self.name)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries, as `encode` does: these models treat queries like documents."""
        return self.encode(queries)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Estimate the tokens of n texts. Returns (n,) int64."""
        return estimate_token_counts(texts)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text, n_tokens in zip(texts, self.count_tokens(texts), strict=True):
            if batch and (len(batch) == _MAX_TEXTS or tokens + n_tokens > _MAX_TOKENS):
                yield batch
                batch, tokens = [], 0
            batch.append(text or " ")  # the service refuses an empty string
            tokens += int(n_tokens)
        yield batch

    def _request(self, batch: list[str]) -> list[list[float]]:
        openai = require("openai", extra="openai")
        options: dict[str, Any] = {"dimensions": self._dimensions} if self._dimensions else {}
        try:
            reply = self._connection.get(self._client).embeddings.create(
                model=self._model, input=batch, encoding_format="float", **options
            )
        except openai.OpenAIError as error:
            raise ModelError(f"{self.name} returned no embeddings: {error}") from error
        rows = sorted(reply.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(batch))):
            raise ModelError(f"{self.name} returned {len(rows)} embeddings for {len(batch)} texts")
        return [row.embedding for row in rows]

    def _client(self) -> Any:
        openai = require("openai", extra="openai")
        try:
            return openai.OpenAI(**self._client_options)
        except openai.OpenAIError as error:
            raise ModelError(f"{self.name}: {error}") from error
