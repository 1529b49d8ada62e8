"""Turn the exceptions of model libraries into LLMErrors that say what to do.

An exception is recognised by its status code, class names and message, not by its type. The same
failures come from the openai and cohere packages, from httpx, and through LlamaIndex and LangChain.

The LLMErrors have no cause, because the exceptions of model libraries hold the request with its key. What
the server said is in the message, without keys. `OptionalFeature` asks again where a feature was refused.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from precise_rag.errors import (
    ContentFilterError,
    ContextLengthError,
    LLMAuthenticationError,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMResponseError,
    LLMServerError,
    PreciseRagError,
)
from precise_rag.redaction import quoted, redacted, short_address

T = TypeVar("T")
_TOO_LONG = re.compile(
    r"(?i)context[ _](?:length|window|size)|maximum (?:context|prompt|input)|max_model_len"
    r"|(?:prompt|input|request) (?:is )?too (?:long|large)|too many (?:input )?tokens|reduce the length"
)
_FILTERED = re.compile(
    r"(?i)content[ _-]?(?:filter|management|policy|policies)|data[ _-]?inspection|responsible[ _-]?ai"
    r"|(?:usage|safety) (?:polic|system|filter)|moderation|(?:input|prompt) (?:is |was )?flagged"
)
_ENDPOINT = re.compile(r"/(?:chat/completions|embeddings|v\d/rerank)/?\Z")
"""What clients put behind `base_url`."""
_BROKEN_OFF = {"RemoteProtocolError", "ReadError", "ChunkedEncodingError", "ClientPayloadError"}
_TRANSPORT = {"APIConnectionError", "TransportError", "ConnectionError", "TimeoutError", "ClientError"}
_UNREADABLE = ("DecodeError", "ValidationError", "RecursionError", "ReplyLimitError")


@contextmanager
def llm_errors(model: Any) -> Iterator[None]:
    """Raise any exception of the block as an LLMError that names the model.

    model: has `name`, and may have `base_url`, the server's address.
    PreciseRagErrors and AssertionErrors are raised unchanged.
    """
    try:
        yield
    except Exception as error:
        failure = failure_of(error, model.name, where=getattr(model, "base_url", None))
        if failure is error:
            raise
        raise failure from failure.__cause__


def failure_of(
    error: Exception, model: str, *, where: str | None = None, key: str = "OPENAI_API_KEY"
) -> Exception:
    """Return the LLMError for a model's exception; other PreciseRagErrors and AssertionErrors unchanged.

    model: name of the model. where: the server's address, for the message; optional. key: what holds its key.
    """
    if isinstance(error, PreciseRagError | AssertionError):
        return error
    status = code if isinstance(code := getattr(error, "status_code", None), int) else None
    said, server = reason_in(error), short_address(where) or "the server"
    words = f"{getattr(error, 'code', None)} {quoted(error)} {said}"
    if status in (None, 400, 413, 422, 500) and _TOO_LONG.search(words):
        return ContextLengthError(f"{model}: the prompt is longer than the model accepts ({said})")
    if status in (None, 400, 403, 422, 451) and _FILTERED.search(words):
        return ContentFilterError(f"{model}: the content filter of {server} refused the prompt ({said})")
    if status is not None and status >= 300:
        return _by_status(status, error, model, server, said, key)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _TRANSPORT:
        what = "did not answer in time" if "imeout" in type(error).__name__ else "cannot be reached"
        what = f"{what}; check that it is running and that the address is right"
        if _BROKEN_OFF & {type(error).__name__, type(error.__cause__).__name__}:
            what = "broke off its answer; try again"
        return LLMConnectionError(f"{model}: {server} {what} ({said})")
    if any(name.endswith(_UNREADABLE) for name in kinds) or "integer string conversion" in said:
        return LLMResponseError(
            f"{model}: {server} answered with something that is not a valid reply ({said})"
        )
    failure = LLMError(f"{model}: {type(error).__name__}: {said}")
    failure.__cause__ = _mistake(error)
    return failure


def reason_in(answer: Any) -> str:
    """Quote the reason that an exception or an error of a server gives, or all of it where none is found."""
    with suppress(Exception):  # an odd answer must not hide the failure
        for name in ("body", "error", "message", "detail"):
            inner = answer.get(name) if isinstance(answer, Mapping) else getattr(answer, name, None)
            answer = inner or answer
    return quoted(answer)


def _by_status(status: int, error: Exception, model: str, server: str, said: str, key: str) -> LLMError:
    headers = getattr(getattr(error, "response", error), "headers", None) or {}
    if status < 400:
        target = _ENDPOINT.sub("", short_address(headers.get("location"), server)) or "no address"
        return LLMConnectionError(
            f"{model}: {server} answered {status} and points to {quoted(target)}, where nothing was sent; "
            "set base_url to the address of the right server"
        )
    if status in (401, 403):
        return LLMAuthenticationError(
            f"{model}: {server} refused the key ({status}); check api_key or {key} ({said})"
        )
    if status == 429:
        wait = redacted(str(headers.get("retry-after", "")))[:40]
        advice = f"wait {wait} s, as it asks" if wait else "wait, or lower the concurrency"
        return LLMRateLimitError(f"{model}: {server} answers 429, too many requests; {advice} ({said})")
    if status >= 500:
        return LLMServerError(f"{model}: {server} answers {status} ({said})")
    return LLMError(f"{model}: {server} refused the request with {status} ({said})")


def _mistake(error: Exception) -> Exception | None:
    """A copy of a built-in exception without keys, to show where a user's function went wrong."""
    if type(error).__module__ != "builtins":
        return None
    said = (redacted(arg) if isinstance(arg, str) else type(arg).__name__ for arg in error.args)
    with suppress(TypeError):  # UnicodeError and others do not take any arguments
        return type(error)(*said).with_traceback(error.__traceback__)
    return None


class OptionalFeature:
    """Asks a model with a feature, such as a JSON schema, and without it once the model has refused it.

    A reply that is blank is an error with its tokens, as always; only the next call goes without the feature.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._is_refused = self._skips_next = False

    def ask(self, with_feature: Callable[[], T] | None, plain: Callable[[], T]) -> T:
        """Return what `with_feature` returns; or `plain`, if there is none or the model refuses it."""
        if with_feature is None or not self._is_asked():
            return plain()
        try:
            return with_feature()
        except Exception as error:
            is_refusal = self._check_refusal(error)
        reply = plain()
        self._is_refused |= is_refusal
        return reply

    async def aask(
        self, with_feature: Callable[[], Awaitable[T]] | None, plain: Callable[[], Awaitable[T]]
    ) -> T:
        """`ask` without blocking the event loop."""
        if with_feature is None or not self._is_asked():
            return await plain()
        try:
            return await with_feature()
        except Exception as error:
            is_refusal = self._check_refusal(error)
        reply = await plain()
        self._is_refused |= is_refusal
        return reply

    def _is_asked(self) -> bool:
        skips, self._skips_next = self._skips_next, False
        return not (skips or self._is_refused)

    def _check_refusal(self, error: Exception) -> bool:
        """Whether the feature is refused, and its reply not only unread; raises errors of other causes."""
        self._skips_next = isinstance(error, LLMResponseError)
        failure = failure_of(error, self._model)
        if failure is error or type(failure) not in (LLMError, LLMResponseError):
            raise error
        return type(failure) is LLMError
