"""OpenAI embeddings, or those of any server that speaks the same protocol."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from tqdm import tqdm

from precise_rag._extras import require
from precise_rag.encoders.rows import encoded_rows
from precise_rag.errors import ModelError
from precise_rag.tokens import estimate_token_counts
from precise_rag.types import FloatArray, IntArray

_MAX_TEXTS, _MAX_TOKENS = 2_048, 200_000
"""Per request, with room below the service's limits because tokens are estimated."""


class OpenAIEncoder:
    """Embeddings by an OpenAI-compatible server. Key and address come from the caller or, as with
    the `openai` package itself, from OPENAI_API_KEY and OPENAI_BASE_URL."""

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

    @property
    def name(self) -> str:
        """ "openai:model", with "/dimensions" where they were chosen; `load_encoder` reads it."""
        return f"openai:{self._model}" + (f"/{self._dimensions}" if self._dimensions else "")

    @cached_property
    def dimension(self) -> int:
        """Length of a vector; asks the server once where it was not chosen."""
        return self._dimensions or int(self.encode(["dimension"]).shape[1])

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """(n, d) float32 rows of unit length. Raises ModelError if the server gives none."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors: list[list[float]] = []
        with tqdm(total=len(texts), desc="encoding", unit="text", disable=not show_progress) as progress:
            for batch in self._batches(texts):
                vectors += self._request(batch)
                progress.update(len(batch))
        return encoded_rows(vectors, source=self.name)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """The same: these models treat queries like documents."""
        return self.encode(queries)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """(n,) estimated token counts."""
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
            reply = self._client.embeddings.create(
                model=self._model, input=batch, encoding_format="float", **options
            )
        except openai.OpenAIError as error:
            raise ModelError(f"{self.name} gave no embeddings: {error}") from error
        rows = sorted(reply.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(batch))):
            raise ModelError(f"{self.name} gave {len(rows)} embeddings for {len(batch)} texts")
        return [row.embedding for row in rows]

    @cached_property
    def _client(self) -> Any:
        openai = require("openai", extra="openai")
        try:
            return openai.OpenAI(**self._client_options)
        except openai.OpenAIError as error:
            raise ModelError(f"{self.name}: {error}") from error
