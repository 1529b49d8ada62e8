"""What is worked out of a text is remembered for a while, as several stages read the same sentences."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def remembers(n_texts: int = 1 << 15, *, longest: int = 2_000) -> Callable[[F], F]:
    """Decorate a function of a text so that it remembers `n_texts` results, of texts up to `longest`."""

    def decorated(function: F) -> F:
        remembered = lru_cache(maxsize=n_texts)(function)

        @wraps(function)
        def chosen(text: str, *args: Any) -> Any:
            return (remembered if len(text) <= longest else function)(text, *args)

        return cast("F", chosen)

    return decorated
