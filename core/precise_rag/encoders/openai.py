"""Embeddings from OpenAI or a server with the same protocol."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag._http import client_address, hooks, openai_client
from precise_rag._processes import PerProcess, Shared
from precise_rag._worker import within
from precise_rag.checks import check_number
from precise_rag.encoders.framework import CallingEncoder
from precise_rag.errors import ModelError
from precise_rag.failures import failure_of, reason_in
from precise_rag.types import FloatArray

_MAX_TEXTS, _MAX_TOKENS = 2_048, 200_000
"""Limits of one request. The tokens are below OpenAI's limit because they are estimates."""
_MOST_BYTES = 256 * 2**20
"""Largest reply: vectors of so many texts, written as numbers."""


class OpenAIEncoder(Shared, CallingEncoder):
    """An encoder that calls an OpenAI-compatible embeddings server.

    model: the model's name; with the dimensions it makes the `name` for `load_encoder`.
    dimensions: length of the vectors; default: the model's own.
    base_url: the server's address; default: OPENAI_BASE_URL, or OpenAI. It may have a user and password.
    api_key, timeout, max_retries: as for `OpenAIChat`; a request, with its retries, ends after ten times
        as many seconds.
    A server that refuses several texts is sent fewer at a time, until it takes them.
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
        check_number("dimensions", dimensions, least=1, whole=True, none="the model's own")
        self._base_url, self._auth = client_address(
            base_url or os.environ.get("OPENAI_BASE_URL"), api_key, timeout=timeout, max_retries=max_retries
        )
        self._model, self._dimensions, self._timeout = model, dimensions, timeout
        self._most = _MAX_TEXTS
        self.name = f"openai:{model}" + (f"/{dimensions}" if dimensions else "")
        if dimensions is not None:
            self.__dict__["dimension"] = int(dimensions)
        self._client_options = {"api_key": api_key, "timeout": timeout, "max_retries": int(max_retries)}
        self._connection: PerProcess[Any] = PerProcess()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_auth": None, "_client_options": {**self._client_options, "api_key": None}}

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries, as `encode` does: these models treat queries like documents."""
        return self.encode(queries)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text, n_tokens in zip(texts, self.count_tokens(texts), strict=True):
            if batch and (len(batch) >= self._most or tokens + n_tokens > _MAX_TOKENS):
                yield batch
                batch, tokens = [], 0
            batch.append(text or " ")  # the service refuses an empty string
            tokens += int(n_tokens)
        yield batch

    def _encoded(self, batch: list[str]) -> FloatArray:
        """The vectors of one batch, which is halved if the server refuses it.

        How many texts are sent at a time is then what the server took, and one more after each such batch.
        The error has no cause: its cause would hold the request with the key.
        """
        options: dict[str, Any] = {"dimensions": self._dimensions} if self._dimensions else {}
        client = self._connection.get(self._client)
        try:
            create = partial(client.embeddings.create, model=self._model, encoding_format="float", **options)
            reply = within(10 * self._timeout, partial(create, input=batch))
            if not isinstance(getattr(reply, "data", None), list):
                raise ModelError(f"{self.name} returned no embeddings ({reason_in(reply)})")
            rows = sorted(reply.data, key=lambda row: int(row.index))
            if [row.index for row in rows] != list(range(len(batch))):
                raise ModelError(f"{self.name} returned {len(rows)} embeddings for {len(batch)} texts")
            self._most = min(self._most + (len(batch) == self._most), _MAX_TEXTS)
            return self._rows([row.embedding for row in rows], len(batch))
        except ModelError:
            raise
        except Exception as error:
            failure = failure_of(error, f"{self.name} returned no embeddings", where=self._base_url)
            is_refused = getattr(error, "status_code", None) in (400, 413, 422)
        if is_refused and len(batch) > 1:
            first = self._encoded(batch[: len(batch) // 2])
            most = min(len(first), self._most)
            rest = [self._encoded(batch[at : at + most]) for at in range(len(first), len(batch), most)]
            self._most = most
            return np.concatenate([first, *rest])
        raise ModelError(str(failure))

    def _client(self) -> Any:
        openai = require("openai", extra="openai")
        options = {"base_url": self._base_url, **self._client_options}
        try:
            return openai_client("", self._auth, hooks(_MOST_BYTES), **options)
        except openai.OpenAIError as error:
            raise ModelError(f"{self.name}: {error}") from error
