"""What belongs to one process: locks, connections and running models.

A fork copies only the thread that calls it. In the child, a lock that another thread held stays
locked, a connection is shared with the parent, and a native library stays in the middle of its work.
What follows is used instead, so that a forked child can go on:

    ProcessLock    a lock that is free in the child
    PerProcess     a value that each process makes for itself
    native_work    around calls of torch, faiss and BLAS: a fork waits until they have returned
    side_by_side   calls at the same time, in threads
    of_one_process an iterator that a forked child cannot go on with says so
"""

import concurrent.futures.thread  # see the last lines
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar
from weakref import WeakSet

from precise_rag._progress import renew_bar_locks
from precise_rag.errors import WorkerError

T = TypeVar("T")

FORK_WAIT = 30.0
"""Seconds that a fork waits for native calls of other threads."""


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


class _NativeCalls:
    """Counts the threads that are in native libraries, so that a fork can wait for them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._forking = 0
        self._timed_out = self._is_broken = self._is_limited = False

    @contextmanager
    def call(self, device: str | None) -> Iterator[None]:
        """Count this thread as being in a native library; a fork waits for it, and it waits for forks."""
        thread = threading.get_ident()
        with self._changed:
            self._check(device)
            while self._forking and not self._inside[thread]:
                self._changed.wait()
            self._inside[thread] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[thread] -= 1
                if not self._inside[thread]:
                    del self._inside[thread]
                self._changed.notify_all()

    def _check(self, device: str | None) -> None:
        if self._is_broken:
            raise WorkerError(
                "this process was forked while a model was running in another thread, for more than "
                f"{FORK_WAIT:g} seconds; start workers with multiprocessing.get_context('spawn')"
            )
        torch = sys.modules.get("torch")
        if torch is not None and device != "cpu" and getattr(torch.cuda, "_is_in_bad_fork", bool)():
            raise WorkerError(
                "CUDA cannot be used in a forked process whose parent used it; start workers with "
                "multiprocessing.get_context('spawn'), or load the model with device='cpu'"
            )
        if self._is_limited:
            self._is_limited = False
            _use_one_thread()

    def before_fork(self) -> None:
        """Wait until no other thread is in a native library, and let none enter."""
        self._changed.acquire()
        self._forking += 1
        own = threading.get_ident()
        done = self._changed.wait_for(lambda: not self._inside.keys() - {own}, FORK_WAIT)
        self._timed_out = not done

    def after_in_parent(self) -> None:
        """Let threads enter again."""
        self._forking -= 1
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        """Start with the calls of the one thread that is left."""
        own = threading.get_ident()
        self._inside = Counter({own: self._inside[own]} if self._inside[own] else {})
        self._changed = threading.Condition()
        self._forking = 0
        self._is_broken |= self._timed_out
        self._is_limited = bool({"torch", "faiss"} & sys.modules.keys())


def native_work(device: str | None = "cpu") -> Any:
    """Return a context manager for calls into a native library that a fork must not interrupt.

    device: where the work runs; None for a GPU if there is one.
    Raises WorkerError in a forked child that cannot do the work. Other children work with one thread,
    because the library's threads are not there.
    """
    return _native.call(device)


def side_by_side(*calls: Callable[[], Any]) -> list[Any]:
    """Run some calls at the same time. Returns what each returns; raises an error when all are done."""
    with concurrent.futures.ThreadPoolExecutor(max(len(calls) - 1, 1)) as pool:
        others = [pool.submit(call) for call in calls[1:]]
        first = [call() for call in calls[:1]]
        return first + [other.result() for other in others]


def of_one_process(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, which other threads or processes prepare.

    Raises WorkerError in a child that was forked after the first: it would wait for ever.
    """
    owner = os.getpid()
    for item in items:
        yield item
        if os.getpid() != owner:
            raise WorkerError(
                "an iterator that was started before a fork cannot go on in the forked process, where its "
                "workers are not; start it there, or finish it before the fork"
            )


def _use_one_thread() -> None:
    """Let torch and faiss compute in the calling thread: OpenMP's threads do not survive a fork."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
    if (faiss := sys.modules.get("faiss")) is not None:
        faiss.omp_set_num_threads(1)


_renewed: WeakSet[ProcessLock | PerProcess[Any]] = WeakSet()
_abandoned: list[object] = []
_native = _NativeCalls()


def _after_in_child() -> None:
    _native.after_in_child()
    renew_bar_locks()
    for part in list(_renewed):
        part.renew()


# Hooks that run before a fork run in reverse order: those of concurrent.futures and logging, which hold
# locks that native work may need, must come after ours.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_native.before_fork,
        after_in_parent=_native.after_in_parent,
        after_in_child=_after_in_child,
    )
