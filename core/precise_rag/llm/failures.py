"""Turn the exceptions of model libraries into LLMErrors that say what to do.

An exception is recognised by its status code, class names and message, not by its type. The same
failures come from the openai package, from httpx, and through LlamaIndex and LangChain.

The LLMErrors stand alone: they have no cause and no context, because the exceptions of model libraries
hold the request with its key. What the server said is in the message, without keys.
"""

import functools
import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Any, TypeVar, cast

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
from precise_rag.limited_http import own_error
from precise_rag.redaction import message_of, redacted

Method = TypeVar("Method", bound=Callable[..., Any])

_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:context|prompt|input)|max_model_len"
    r"|(?:prompt|input|request) (?:is )?too (?:long|large)|too many (?:input )?tokens|reduce the length",
    re.I,
)
_FILTERED = re.compile(
    r"content[ _-]?(?:filter|management|policy|policies)|data[ _-]?inspection|responsible[ _-]?ai"
    r"|(?:usage|safety) (?:polic|system|filter)|moderation|(?:input|prompt) (?:is |was )?flagged",
    re.I,
)
_TRANSPORT = {"APIConnectionError", "TransportError", "ConnectionError", "TimeoutError", "ClientError"}
_UNREADABLE = ("JSONDecodeError", "ValidationError", "RecursionError", "UnicodeDecodeError")


def raises_llm_errors(method: Method) -> Method:
    """Decorate a method of a model: any exception is raised as an LLMError that names the model.

    method: a function, a coroutine function, a generator or an asynchronous generator. Its object has
        `name`, and may have `base_url`, the server's address.
    PreciseRagErrors and AssertionErrors are raised unchanged.
    """

    if inspect.isasyncgenfunction(method):
        wrapper: Any = _astreaming(method)
    elif inspect.isgeneratorfunction(method):
        wrapper = _streaming(method)
    elif inspect.iscoroutinefunction(method):
        wrapper = _acalling(method)
    else:
        wrapper = _calling(method)
    return cast(Method, functools.wraps(method)(wrapper))


# The failure is raised after the `except` block: inside it, the exception would become its context.


def _calling(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            failure = _failure_of(error, self)
        raise failure

    return call


def _acalling(method: Callable[..., Any]) -> Callable[..., Any]:
    async def acall(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await method(self, *args, **kwargs)
        except Exception as error:
            failure = _failure_of(error, self)
        raise failure

    return acall


def _streaming(method: Callable[..., Any]) -> Callable[..., Any]:
    def stream(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        try:
            yield from method(self, *args, **kwargs)
        except Exception as error:
            failure = _failure_of(error, self)
        else:
            return
        raise failure

    return stream


def _astreaming(method: Callable[..., Any]) -> Callable[..., Any]:
    async def astream(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        try:
            async with aclosing(method(self, *args, **kwargs)) as items:
                async for item in items:
                    yield item
        except Exception as error:
            failure = _failure_of(error, self)
        else:
            return
        raise failure

    return astream


def _failure_of(error: Exception, model: Any) -> Exception:
    return failure_of(error, model.name, where=getattr(model, "base_url", None))


def failure_of(error: Exception, model: str, *, where: str | None = None) -> Exception:
    """Return the LLMError for a model's exception; other PreciseRagErrors and AssertionErrors unchanged.

    model: name of the model. where: the server's address, for the message; optional.
    """
    if isinstance(error, PreciseRagError | AssertionError):
        return error
    return translate(error, model, where=where)


def translate(error: Exception, model: str, *, where: str | None = None) -> LLMError:
    """Return the LLMError for `error`, without a cause. model, where: as for `failure_of`."""
    if own := own_error(error):
        return own
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    said = message_of(error)
    server = where or "the server"
    kind = refused_prompt(status, f"{getattr(error, 'code', None)} {said}")
    if kind is ContextLengthError:
        return kind(f"{model}: the prompt is longer than the model accepts ({said})")
    if kind is ContentFilterError:
        return kind(f"{model}: the content filter of {server} refused the prompt ({said})")
    if status is not None and status >= 400:
        return _by_status(status, error, model, server, said)
    if _kinds(error) & _TRANSPORT:
        what = "did not answer in time" if "imeout" in type(error).__name__ else "cannot be reached"
        return LLMConnectionError(
            f"{model}: {server} {what}; check that it is running and that the address is right ({said})"
        )
    if any(name.endswith(_UNREADABLE) for name in _kinds(error)) or "integer string conversion" in said:
        return LLMResponseError(
            f"{model}: {server} answered with something that is not a completion ({said})"
        )
    return _with_cause(LLMError(f"{model}: {type(error).__name__}: {said}"), error)


def refused_prompt(status: int | None, said: str) -> type[LLMError] | None:
    """Return ContextLengthError or ContentFilterError if a server refused the prompt for that, else None."""
    if status in (None, 400, 413, 422, 500) and _TOO_LONG.search(said):
        return ContextLengthError
    if status in (None, 400, 403, 422, 451) and _FILTERED.search(said):
        return ContentFilterError
    return None


def _by_status(status: int, error: Exception, model: str, server: str, said: str) -> LLMError:
    if status in (401, 403):
        return LLMAuthenticationError(
            f"{model}: {server} refused the key ({status}); check api_key or OPENAI_API_KEY ({said})"
        )
    if status == 429:
        wait = _retry_after(error)
        advice = f"wait {wait} s, as it asks" if wait else "wait, or lower the concurrency"
        return LLMRateLimitError(f"{model}: {server} still answers 429 after all retries; {advice} ({said})")
    if status >= 500:
        return LLMServerError(f"{model}: {server} still answers {status} after all retries ({said})")
    return LLMError(f"{model}: {server} refused the request with {status} ({said})")


def _retry_after(error: Exception) -> str:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    return redacted(str(headers.get("retry-after", "")))[:40]


def _kinds(error: Exception) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _with_cause(failure: LLMError, error: Exception) -> LLMError:
    """The failure with a copy of a built-in exception as its cause, for mistakes in a user's function."""
    if type(error).__module__ == "builtins":
        said = (redacted(arg) if isinstance(arg, str) else type(arg).__name__ for arg in error.args)
        with suppress(TypeError):  # UnicodeError and others do not take any arguments
            failure.__cause__ = type(error)(*said).with_traceback(error.__traceback__)
    return failure
