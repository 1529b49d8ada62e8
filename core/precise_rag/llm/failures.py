"""Turn the exceptions of model libraries into LLMErrors that say what to do.

An exception is recognised by its status code, class names and message, not by its type: the same
failures come from the openai package, from httpx, and through LlamaIndex and LangChain.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from precise_rag.errors import (
    ContextLengthError,
    LLMAuthenticationError,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMResponseError,
    LLMServerError,
    PreciseRagError,
)

_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:context|prompt|input)|max_model_len"
    r"|(?:prompt|input|request) (?:is )?too (?:long|large)|too many (?:input )?tokens|reduce the length",
    re.I,
)
_TRANSPORT = {"APIConnectionError", "TransportError", "ConnectionError", "TimeoutError", "ClientError"}


@contextmanager
def translated(model: str, *, where: str | None = None) -> Iterator[None]:
    """Raise any exception of the block as an LLMError that names the model.

    where: the server's address, for the message; optional.
    PreciseRagErrors and AssertionErrors are raised unchanged.
    """
    try:
        yield
    except (PreciseRagError, AssertionError):
        raise
    except Exception as error:
        raise translate(error, model, where=where) from error


def translate(error: Exception, model: str, *, where: str | None = None) -> LLMError:
    """Return the LLMError for `error`. model, where: as in `translated`."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    said = " ".join(str(error).split())[:400] or type(error).__name__
    server = where or "the server"
    code = getattr(error, "code", None)
    if status in (None, 400, 413, 422, 500) and _TOO_LONG.search(f"{code} {said}"):
        return ContextLengthError(f"{model}: the prompt is longer than the model accepts ({said})")
    if status in (401, 403):
        return LLMAuthenticationError(
            f"{model}: {server} refused the key ({status}); check api_key or OPENAI_API_KEY ({said})"
        )
    if status == 429:
        wait = _retry_after(error)
        advice = f"wait {wait} s, as it asks" if wait else "wait, or lower the concurrency"
        return LLMRateLimitError(f"{model}: {server} still answers 429 after all retries; {advice} ({said})")
    if status is not None and status >= 500:
        return LLMServerError(f"{model}: {server} still answers {status} after all retries ({said})")
    if status is not None and status >= 400:
        return LLMError(f"{model}: {server} refused the request with {status} ({said})")
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _TRANSPORT:
        what = "did not answer in time" if "imeout" in type(error).__name__ else "cannot be reached"
        return LLMConnectionError(
            f"{model}: {server} {what}; check that it is running and that the address is right ({said})"
        )
    if isinstance(error, json.JSONDecodeError) or "ValidationError" in type(error).__name__:
        return LLMResponseError(
            f"{model}: {server} answered with something that is not a completion ({said})"
        )
    return LLMError(f"{model}: {type(error).__name__}: {said}")


def _retry_after(error: Exception) -> str:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    return str(headers.get("retry-after", ""))
