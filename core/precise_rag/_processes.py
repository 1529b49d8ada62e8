"""What belongs to one process: locks, connections and running models.

A fork copies only the thread that calls it. In the child, a lock that another thread held stays locked, and
a connection or a running model is shared with the parent. A child can go on that was forked while no other
thread was computing, because what is in this module is used instead.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, Self, TypeVar
from weakref import WeakSet, WeakValueDictionary

from precise_rag.errors import ModelError

T = TypeVar("T")


class ProcessLock:
    """A reentrant lock; it is free in a forked child, in a copy and after unpickling.

    Use it where a child can go on with the guarded state as it was at the fork.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _renewed.add(self)

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def renew(self) -> None:
        """Replace the lock if another thread holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


class PerProcess(Generic[T]):
    """A value that each process makes for itself, such as a connection.

    A forked child, a copy and an unpickled object start without the value.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._value: T | None = None
        _renewed.add(self)

    def get(self, make: Callable[[], T]) -> T:
        """Return the value; `make` makes it at the first call."""
        with self._lock:
            if self._value is None:
                self._value = make()
            return self._value

    def take(self) -> T | None:
        """Remove the value and return it."""
        with self._lock:
            value, self._value = self._value, None
        return value

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def renew(self) -> None:
        """Forget the value, without closing it: closing could wait for a lock that nobody will release."""
        self._lock.renew()
        _abandoned.append(self._value)
        self._value = None


class Shared:
    """Base of objects that threads share and that do not change: a copy is the object itself."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Loaded(Shared):
    """Base of models from files. A pickle has no weights: the model is loaded again, or is there already.

    _again: makes it again; None for one that was made in memory, whose pickle is whole.
    """

    _again: "partial[Any] | None" = None

    @property
    def _identity(self) -> str:
        """What is the same in a model that was loaded again: the checksum of its weights, or a name."""
        return str(getattr(self, "weights_sha256", None) or getattr(self, "name", ""))

    def once(self) -> Self:
        """Return the model that this process holds already in place of this one; it ends with its holders."""
        if self._again is None:
            return self
        with _holding:
            made = self._again
            key = made.func, made.args, *sorted(made.keywords.items()), self._identity
            held: Self = _held.setdefault(key, self)
        return held

    def __reduce_ex__(self, protocol: Any) -> Any:
        again = self._again
        return super().__reduce_ex__(protocol) if again is None else (_load_again, (again, self._identity))


def _load_again(again: "partial[Any]", identity: str) -> Any:
    """Return the model that was pickled. Raises ModelError if another one is there now."""
    model = again()
    if model._identity != identity:
        raise ModelError(
            f"{again.args[0]!r} must hold {identity!r}, which was pickled, got {model._identity!r}; install "
            "that model here, or load one in the worker"
        )
    return model.once()


def side_by_side(*calls: Callable[[], Any]) -> list[Any]:
    """Run some calls at the same time. Returns what each returns; raises an error when all are done."""
    with ThreadPoolExecutor(max(len(calls) - 1, 1)) as pool:
        others = [pool.submit(call) for call in calls[1:]]
        first = [call() for call in calls[:1]]
        return first + [other.result() for other in others]


def _after_in_child() -> None:
    """Renew what belongs to one process; torch and faiss use one thread, as those of OpenMP are not there."""
    for part in list(_renewed):
        part.renew()
    for module, function in (("torch", "set_num_threads"), ("faiss", "omp_set_num_threads")):
        set_threads = getattr(sys.modules.get(module), function, None)
        if set_threads is not None:
            set_threads(1)


_held: "WeakValueDictionary[Any, Any]" = WeakValueDictionary()
_renewed: WeakSet[ProcessLock | PerProcess[Any]] = WeakSet()
_abandoned: list[object] = []
_holding = ProcessLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)
