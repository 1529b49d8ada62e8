"""Forked children of a test."""

import os
import pickle
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def in_child(work: Callable[[], Any], seconds: float = 60) -> Any:
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
    end = time.monotonic() + seconds
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.01)
    with os.fdopen(read, "rb") as pipe:
        return pickle.loads(pipe.read())
