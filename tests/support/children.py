"""Forked children of a test, and a limit of its time."""

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Fail what takes longer, such as waiting for a pipe."""

    def stop(*_: object) -> None:
        raise AssertionError(f"still running after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    left = signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(left)
        signal.signal(signal.SIGALRM, before)


def in_child(work: Callable[[], Any], seconds: int = 60) -> Any:
    """Fork, call `work` in the child, and return what it returned; fails if the child hangs."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            result = work()
        except BaseException as error:
            result = repr(error)
        os.write(write, pickle.dumps(result))
        os._exit(0)
    os.close(write)
    try:
        with at_most(seconds), os.fdopen(read, "rb") as pipe:
            return pickle.loads(pipe.read())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
