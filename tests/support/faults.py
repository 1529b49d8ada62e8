"""Faults at a chosen file operation."""

import builtins
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

OPERATIONS = ("open", "fsync", "replace", "mkdir", "scandir", "unlink", "rmdir", "lstat", "stat", "fstat")


@contextmanager
def failing(at: int, error: Callable[[], BaseException]) -> Iterator[list[str]]:
    """Raise at the n-th file operation, from 1 on, and at no other. Gives the names of those called."""
    called: list[str] = []

    def wrapped(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            called.append(name)
            if len(called) == at:
                raise error()
            return operation(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, wrapped(name, getattr(os, name)))
        patch.setattr(np, "save", wrapped("np.save", np.save))
        patch.setattr(builtins, "open", wrapped("builtins.open", builtins.open))
        patch.setattr("io.open", wrapped("io.open", builtins.open))
        yield called


def no_space() -> OSError:
    """The error of a full disk."""
    return OSError(errno.ENOSPC, "No space left on device")


def not_allowed() -> OSError:
    """The error of a file or folder of somebody else."""
    return PermissionError(errno.EACCES, "Permission denied")
