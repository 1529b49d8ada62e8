"""Faults at a chosen file operation or allocation of an array, and in the place of a file."""

import builtins
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

OPERATIONS = ("open", "fsync", "replace", "mkdir", "scandir", "unlink", "rmdir", "lstat", "stat", "fstat")
ALLOCATIONS = (
    *("append", "arange", "array", "asarray", "ascontiguousarray", "bincount", "concatenate", "cumsum"),
    *("diff", "empty", "flatnonzero", "frombuffer", "fromiter", "full", "isfinite", "memmap", "ones"),
    *("repeat", "searchsorted", "sort", "stack", "unique", "where", "zeros", "zeros_like"),
)
IN_PLACE_OF_A_FILE: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "pipe": lambda path: os.mkfifo(path),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "broken": lambda path: path.symlink_to("nowhere/at/all"),
    "loop": lambda path: path.symlink_to(path.name),
    "folder": Path.mkdir,
    "not text": lambda path: path.write_bytes(b"\xff\xfe\x00\xd8"),
    "deep": lambda path: path.write_text("[" * 200_000),
    "odd": lambda path: path.write_text('{"seed": 1e999, "weights_sha256": 7}'),
    "4 TiB": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 2**42),
}
"""What may stand where a file should."""


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
