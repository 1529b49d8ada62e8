"""Which processor a local model runs on, found without importing torch."""

import ctypes
import sys
from functools import cache
from importlib import import_module

from precise_rag._extras import is_installed
from precise_rag.errors import InputError


def runs_on_onnx(device: str | None) -> bool:
    """Return whether ONNX Runtime runs a model of a kind that it can run: on the CPU.

    device: "cpu"; None for a GPU if sentence-transformers is installed and torch can use one, else the CPU;
        or any device of torch.
    """
    if device is not None and not isinstance(device, str):
        raise InputError(f"device must be a text such as 'cpu' or 'cuda', got {type(device).__name__}")
    return device == "cpu" or (device is None and not (is_installed("sentence_transformers") and has_gpu()))


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
