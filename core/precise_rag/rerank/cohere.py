"""Cohere's hosted rerankers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import PerProcess, Shared
from precise_rag.errors import (
    LLMAuthenticationError,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMResponseError,
    LLMServerError,
)
from precise_rag.types import Candidate, FloatArray, ScoreScale

DEFAULT_COHERE = "rerank-v3.5"


class CohereReranker(Shared):
    """Hosted reranker of Cohere, through version 2 of its client. Scores are probabilities.

    model: such as "rerank-v3.5" (default), or ChunkRAG's "rerank-english-v3.0".
    api_key: default: the environment's CO_API_KEY.
    base_url: default: Cohere's own.
    timeout: seconds for one request.
    max_retries: repetitions of a request after status 429, 5xx or a broken connection.
    batch_size: documents in one request; more candidates take several requests.

    The connection stays open between calls; `close` or leaving a `with` block closes it. A
    pickle has no key: the key of an unpickled reranker is CO_API_KEY.
    Raises LLMError: of the subclass that names the cause, such as LLMRateLimitError.
    """

    score_scale: ScoreScale = "probability"

    def __init__(
        self,
        model: str = DEFAULT_COHERE,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 3,
        batch_size: int = 1000,
    ) -> None:
        self.name = f"cohere:{model}"
        self._model = model
        self._options = {"api_key": api_key, "base_url": base_url}
        self._timeout = timeout
        self._max_retries = max_retries
        self._batch_size = batch_size
        self._connection: PerProcess[tuple[Any, Any]] = PerProcess()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_options": {**self._options, "api_key": None}}

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) scores in [0, 1], one per candidate, in their order."""
        scores = np.full(len(candidates), np.nan, dtype=np.float32)
        for first in range(0, len(candidates), self._batch_size):
            texts = [c.text for c in candidates[first : first + self._batch_size]]
            with self._translated():
                response = self._connection.get(self._connect)[0].rerank(
                    model=self._model,
                    query=query,
                    documents=texts,
                    request_options={"max_retries": self._max_retries},
                )
            for result in response.results:
                if not 0 <= result.index < len(texts):
                    raise LLMResponseError(f"{self.name} scored document {result.index} of {len(texts)}")
                scores[first + result.index] = result.relevance_score
        if np.isnan(scores).any():
            raise LLMResponseError(
                f"{self.name} left {int(np.isnan(scores).sum())} of {len(scores)} documents without a score"
            )
        return scores

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if (connection := self._connection.take()) is not None:
            connection[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> tuple[Any, Any]:
        """Return Cohere's client and the connection that it uses."""
        http = require("httpx", extra="cohere").Client(timeout=self._timeout, follow_redirects=True)
        given = {name: value for name, value in self._options.items() if value is not None}
        return require("cohere", extra="cohere").ClientV2(**given, httpx_client=http), http

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate the errors of Cohere's client into ours."""
        errors, http = require("cohere.core", extra="cohere"), require("httpx", extra="cohere")
        try:
            yield
        except errors.ApiError as error:
            raise self._by_status(error) from error
        except http.TimeoutException as error:
            raise LLMConnectionError(f"{self.name} gave no answer in {self._timeout:g} s") from error
        except http.TransportError as error:
            raise LLMConnectionError(f"{self.name} cannot be reached ({error})") from error

    def _by_status(self, error: Any) -> LLMError:
        status, said = error.status_code, " ".join(str(error.body).split())[:300]
        if status in (None, 401, 403):
            return LLMAuthenticationError(
                f"{self.name} refused the key; check api_key or CO_API_KEY ({said})"
            )
        if status == 429:
            return LLMRateLimitError(
                f"{self.name} still answers 429 after {self._max_retries} retries ({said})"
            )
        if status >= 500:
            return LLMServerError(
                f"{self.name} still answers {status} after {self._max_retries} retries ({said})"
            )
        return LLMError(f"{self.name} refused the request with {status} ({said})")
