"""Faults at a chosen file operation or allocation of an array."""

import builtins
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

OPERATIONS = ("open", "fsync", "replace", "mkdir", "scandir", "unlink", "rmdir", "lstat", "stat", "fstat")
ALLOCATIONS = (
    *("append", "arange", "array", "asarray", "ascontiguousarray", "bincount", "concatenate", "cumsum"),
    *("diff", "empty", "flatnonzero", "frombuffer", "fromiter", "full", "isfinite", "memmap", "ones"),
    *("repeat", "searchsorted", "sort", "stack", "unique", "where", "zeros", "zeros_like"),
)


@contextmanager
def failing(at: int, error: Callable[[], BaseException], *, allocations: bool = False) -> Iterator[list[str]]:
    """Raise at the n-th file operation, from 1 on, and at no other. Gives the names of those called.

    allocations: whether to count the functions of numpy that make arrays instead.
    """
    called: list[str] = []

    def wrapped(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            called.append(name)
            if len(called) == at:
                raise error()
            return operation(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        if allocations:
            for name in ALLOCATIONS:
                patch.setattr(np, name, wrapped(name, getattr(np, name)))
            yield called
            return
        for name in OPERATIONS:
            patch.setattr(os, name, wrapped(name, getattr(os, name)))
        patch.setattr(builtins, "open", wrapped("builtins.open", builtins.open))
        patch.setattr("io.open", wrapped("io.open", builtins.open))
        yield called


def no_space() -> OSError:
    """The error of a full disk."""
    return OSError(errno.ENOSPC, "No space left on device")


def not_allowed() -> OSError:
    """The error of a file or folder of somebody else."""
    return PermissionError(errno.EACCES, "Permission denied")
