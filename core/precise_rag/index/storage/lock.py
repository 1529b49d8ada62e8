"""The lock that lets one writer at a time change a saved index, across processes and threads."""

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock

from precise_rag.errors import IndexLockedError, IndexWriteError

LOCK_FILE, HOLDER_FILE, NEXT_FILE = "precise-rag.lock", "precise-rag.lock.holder", "precise-rag.lock.next"
"""In the folder of an index: the file that is locked, the process that holds it, and the file that the
next writer holds while it waits, so that a writer that has just finished does not come first again."""
LOCK_FILES = frozenset({LOCK_FILE, HOLDER_FILE, NEXT_FILE})
WAIT = 10.0
"""Seconds that a writer waits for another one."""
LONGEST_WAIT = 1e6
"""The most seconds that it may be told to wait."""
POLL = 0.01
"""Seconds between two looks at the lock."""


class _Folder:
    """The lock of one folder within this process, for its threads; `depth` counts nested holds.

    A thread that waits holds `turn`, so that one that has just finished does not come first again.
    """

    def __init__(self) -> None:
        self.held = threading.Lock()
        self.turn = threading.Lock()
        self.owner: int | None = None
        self.depth = 0

    def acquire(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        if self.owner == threading.get_ident():
            return True
        if not self.turn.acquire(timeout=timeout):
            return False
        try:
            if not self.held.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
                return False
        finally:
            self.turn.release()
        self.owner = threading.get_ident()
        return True

    def release(self) -> None:
        if self.depth == 0:
            self.owner = None
            self.held.release()


_folders: dict[str, _Folder] = {}
_adding = threading.Lock()


def _forget_after_fork() -> None:
    global _adding
    _folders.clear()
    _adding = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


@contextmanager
def hold_folder(folder: Path, timeout: float = WAIT) -> Iterator[None]:
    """Lock an existing folder against other processes and threads; a thread may hold it several times.

    The operating system releases the lock when its holder dies.
    Raises IndexLockedError if another writer still holds it after `timeout` seconds, and
    IndexWriteError if the lock file cannot be made.
    """
    with _adding:
        state = _folders.setdefault(os.path.realpath(folder), _Folder())
    if not state.acquire(max(timeout, 0.0)):
        raise _locked(folder)
    try:
        lock = _lock_file(folder, timeout) if state.depth == 0 else None
        state.depth += 1
        try:
            yield
        finally:
            state.depth -= 1
            if lock is not None:
                with suppress(OSError):
                    (folder / HOLDER_FILE).unlink(missing_ok=True)
                lock.release()
    finally:
        state.release()


def _lock_file(folder: Path, timeout: float) -> filelock.BaseFileLock:
    lock, turn = filelock.FileLock(str(folder / LOCK_FILE)), filelock.FileLock(str(folder / NEXT_FILE))
    deadline = time.monotonic() + max(timeout, 0.0)
    try:
        with turn.acquire(timeout=max(timeout, 0.0), poll_interval=POLL):
            lock.acquire(timeout=max(deadline - time.monotonic(), 0.0), poll_interval=POLL)
    except filelock.Timeout as error:
        raise _locked(folder) from error
    except (OSError, NotImplementedError) as error:
        raise IndexWriteError(f"{folder} cannot be locked for writing: {error}") from error
    with suppress(OSError):
        _write_holder(folder / HOLDER_FILE)
    return lock


def _write_holder(file: Path) -> None:
    file.unlink(missing_ok=True)  # never write through a link that was put there
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with open(descriptor, "w", encoding="utf-8") as opened:
        json.dump({"pid": os.getpid(), "host": socket.gethostname()}, opened)


def _locked(folder: Path) -> IndexLockedError:
    return IndexLockedError(
        f"{folder} is being written by {_holder(folder / HOLDER_FILE)}; "
        "wait until it has finished, then try again"
    )


def _holder(file: Path) -> str:
    """The process that holds the lock, in words."""
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return "another process"
        with file.open(encoding="utf-8") as opened:
            holder = json.loads(opened.read(1_000))
        pid, host = int(holder["pid"]), str(holder["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    if (pid, host) == (os.getpid(), socket.gethostname()):
        return "another thread of this process"
    return f"process {pid} on host {host!r}"
