"""What is worked out of a text is remembered for a while, as several stages read the same sentences."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def remembers(
    n_texts: int, *, longest: int = 2_000
) -> Callable[[Callable[Concatenate[str, P], T]], Callable[Concatenate[str, P], T]]:
    """Decorate a function of a text so that it remembers the last results.

    n_texts: how many. longest: characters up to which a text is remembered.
    """

    def decorated(function: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
        remembered = lru_cache(maxsize=n_texts)(function)

        @wraps(function)
        def chosen(text: str, *args: P.args, **kwargs: P.kwargs) -> T:
            return (remembered if len(text) <= longest else function)(text, *args, **kwargs)

        return chosen

    return decorated
