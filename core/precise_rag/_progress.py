"""Progress bars that take no lock unless they are shown."""

import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class _NoBar(Generic[T]):
    """A progress bar that shows nothing."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def update(self, n: float = 1) -> None:
        """Do nothing."""

    def set_postfix(self, **values: object) -> None:
        """Do nothing."""

    def write(self, line: str) -> None:
        """Do nothing."""


def progress_bar(items: Iterable[T] | None = None, *, shown: bool, **options: Any) -> Any:
    """Return a tqdm bar if `shown`, else an object that can be used in the same way.

    items: what to iterate over; optional. options: of tqdm, such as total and desc.
    A tqdm bar takes a lock that processes share, even if it is disabled; a killed process may hold it.
    """
    if not shown:
        return _NoBar(() if items is None else items)
    from tqdm import tqdm

    return tqdm(items, **options)


def renew_bar_locks() -> None:
    """Give tqdm a lock of this process; its default one may be held by another thread or process."""
    module = sys.modules.get("tqdm.std")
    if module is None:
        return
    root, default = module.tqdm, module.TqdmDefaultWriteLock
    classes = [root]
    for cls in classes:
        classes += cls.__subclasses__()
        own = vars(cls).get("_lock")
        if isinstance(own, default) or (own is None and cls is root):
            cls.set_lock(threading.RLock())
