"""Progress bars that take no lock unless they are shown."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any


class _NoBar(AbstractContextManager["_NoBar"]):
    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __exit__(self, *_: object) -> None:
        return

    def update(self, n: int) -> None:
        """Do nothing."""


def progress_bar(items: Iterable[Any] | None = None, *, shown: bool, **options: Any) -> Any:
    """Return a tqdm bar if `shown`, else an object that is used in the same way: it has `update`.

    items: what to iterate over; optional. options: of tqdm, such as total and desc.
    A bar within another one is cleared at its end.
    A tqdm bar takes a lock that processes share, even if it is disabled; a killed process may hold it.
    """
    if not shown:
        return _NoBar(() if items is None else items)
    from tqdm import tqdm

    return tqdm(items, leave=None, **options)
