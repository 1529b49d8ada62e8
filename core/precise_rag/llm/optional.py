"""Features that a model may refuse, such as replies in a JSON schema."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from precise_rag.errors import LLMError, LLMResponseError, PreciseRagError
from precise_rag.llm.failures import failure_of

T = TypeVar("T")


class OptionalFeature:
    """Asks a model with a feature, and without it once the model has refused it.

    model: name of the model.

    A reply that is blank is an error with its tokens, as always; the next call goes without the feature.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._is_refused = False

    def ask(self, with_feature: Callable[[], T] | None, plain: Callable[[], T]) -> T:
        """Return what `with_feature` returns; or `plain`, if there is none or the model refuses it."""
        if with_feature is None or self._is_refused:
            return plain()
        try:
            return with_feature()
        except Exception as error:
            if not self._may_refuse(error):
                raise
        reply = plain()
        self._is_refused = True
        return reply

    async def aask(
        self, with_feature: Callable[[], Awaitable[T]] | None, plain: Callable[[], Awaitable[T]]
    ) -> T:
        """`ask` without blocking the event loop."""
        if with_feature is None or self._is_refused:
            return await plain()
        try:
            return await with_feature()
        except Exception as error:
            if not self._may_refuse(error):
                raise
        reply = await plain()
        self._is_refused = True
        return reply

    def _may_refuse(self, error: Exception) -> bool:
        """Whether the feature may be why the model failed: not for keys, limits, filters and connections."""
        self._is_refused |= isinstance(error, LLMResponseError)
        if isinstance(error, PreciseRagError | AssertionError):
            return False
        return type(failure_of(error, self._model)) in (LLMError, LLMResponseError)
