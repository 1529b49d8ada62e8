"""Which processor a local model runs on, found without importing torch."""

import ctypes
import sys
from functools import cache
from importlib import import_module

from precise_rag._extras import is_installed
from precise_rag.errors import InputError


def best_device(device: str | None) -> str:
    """Return the device; for None, "cuda" if torch can use a GPU, else "cpu". Raises InputError."""
    if device is not None and not isinstance(device, str):
        raise InputError(f"device must be a text such as 'cpu' or 'cuda', got {type(device).__name__}")
    torch = import_module("torch") if str(device).startswith("cuda") and is_installed("torch") else None
    if torch and not torch.cuda.is_available():
        raise InputError(f"device {device!r}: torch finds no GPU here; leave the device out, or say 'cpu'")
    return device or ("cuda" if has_gpu() else "cpu")


def runs_on_onnx(device: str | None) -> bool:
    """Return whether ONNX Runtime runs a model of a kind that it can run: on the CPU.

    device: as for `best_device`; None is the CPU without sentence-transformers, too.
    """
    return best_device(device) == "cpu" or (device is None and not is_installed("sentence_transformers"))


@cache
def has_gpu() -> bool:
    """Return whether torch can use a CUDA device; torch is imported only if there is a driver."""
    if not is_installed("torch"):
        return False
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return bool(import_module("torch").cuda.is_available())
