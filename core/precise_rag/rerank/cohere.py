"""Cohere's hosted rerankers."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag._http import client_address, hooks
from precise_rag._processes import PerProcess, Shared
from precise_rag._worker import within
from precise_rag.checks import check_number
from precise_rag.errors import LLMAuthenticationError, LLMError, LLMResponseError
from precise_rag.failures import failure_of, reason_in
from precise_rag.redaction import quoted
from precise_rag.tokens import readable_texts
from precise_rag.types import Candidate, FloatArray, ScoreScale

DEFAULT_COHERE = "rerank-v3.5"


class CohereReranker(Shared):
    """Hosted reranker of Cohere, through version 2 of its client. Scores are probabilities.

    model: such as "rerank-v3.5" (default), or ChunkRAG's "rerank-english-v3.0".
    api_key: default: the environment's CO_API_KEY.
    base_url: default: Cohere's own.
    timeout: most seconds without a byte from the server. A request, with its retries, ends after ten times
        as many.
    max_retries: repetitions of a request after status 429, 5xx or a broken connection.
    batch_size: documents in one request; more candidates take several requests.

    The connection stays open between calls; `close` closes it. A pickle has no key: the key of
    an unpickled reranker is CO_API_KEY.
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
        url, self._auth = client_address(base_url, api_key, timeout=timeout, max_retries=max_retries)
        check_number("batch_size", batch_size, least=1, whole=True)
        self.name = f"cohere:{model}"
        self._model = model
        self._options = {"api_key": api_key, "base_url": url}
        self._timeout = timeout
        self._max_retries = max_retries
        self._batch_size = batch_size
        self._connection: PerProcess[tuple[Any, Any]] = PerProcess()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_auth": None, "_options": {**self._options, "api_key": None}}

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) scores in [0, 1], one per candidate, in their order."""
        scores = np.full(len(candidates), np.nan, dtype=np.float32)
        query, *given = readable_texts([query, *(c.text for c in candidates)])
        for first in range(0, len(candidates), self._batch_size):
            for index, score in self._rerank(query, given[first : first + self._batch_size]):
                scores[first + index] = score
        if left := int(np.isnan(scores).sum()):
            raise LLMResponseError(f"{self.name} left {left} of {len(scores)} documents without a score")
        return scores

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if (connection := self._connection.take()) is not None:
            connection[1].close()

    def _connect(self) -> tuple[Any, Any]:
        """Return Cohere's client and the connection that it uses."""
        httpx = require("httpx", extra="cohere")
        if not (self._options["api_key"] or os.environ.get("CO_API_KEY")):
            raise LLMAuthenticationError(f"{self.name}: no API key; set CO_API_KEY (api_key=)")
        http = httpx.Client(timeout=self._timeout, auth=self._auth, event_hooks=hooks())
        given = {name: value for name, value in self._options.items() if value is not None}
        return require("cohere", extra="cohere").ClientV2(**given, httpx_client=http), http

    def _rerank(self, query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
        """The index and score of each text, as the server orders them.

        Its errors have no cause: the cause would hold the request with the key.
        """
        try:
            client, options = self._connection.get(self._connect)[0], {"max_retries": int(self._max_retries)}
            ask = partial(client.rerank, model=self._model, query=query, documents=texts)
            response = within(10 * self._timeout, partial(ask, request_options=options))
            if not isinstance(response.results, list):
                raise LLMResponseError(f"{self.name}: the reply has no scores ({reason_in(response)})")
            return [self._result(result, len(texts)) for result in response.results]
        except Exception as error:
            failure = failure_of(error, self.name, where=self._options["base_url"], key="CO_API_KEY")
            if type(failure) is LLMError and (getattr(error, "status_code", None) or 0) < 300:
                failure = LLMResponseError(f"{self.name}: the reply has no scores ({reason_in(error)})")
        raise failure

    def _result(self, result: Any, n: int) -> tuple[int, float]:
        index, score = result.index, float(result.relevance_score)
        if not isinstance(index, int) or not 0 <= index < n:
            raise LLMResponseError(f"{self.name} scored document {quoted(index)} of {n}")
        if not 0.0 <= score <= 1.0:
            raise LLMResponseError(f"{self.name} gave document {index} the score {score}, not from 0 to 1")
        return index, score
