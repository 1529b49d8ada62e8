"""Facts about this machine, this process and the installed libraries, for results and run files."""

import os
import platform
import resource
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import precise_rag

PEER_LIBRARIES = (
    "langchain-text-splitters",
    "langchain-experimental",
    "langchain-classic",
    "llama-index-core",
    "chonkie",
    "semchunk",
    "bm25s",
)
"""Distributions that the pipelines of other libraries use."""

LIBRARIES = ("numpy", "torch", "sentence-transformers", *PEER_LIBRARIES, "ir-measures")
"""Distributions whose versions are written into results."""


def circumstances(seed: int) -> dict[str, Any]:
    """Return the date, the versions, the machine and the seed of a result, as plain values."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "precise-rag": precise_rag.__version__,
        "python": platform.python_version(),
        "libraries": {name: number for name in LIBRARIES if (number := installed_version(name))},
        "machine": f"{platform.machine()}, {os.cpu_count()} CPU cores",
        "seed": seed,
    }


def installed_version(name: str) -> str:
    """Return the version of an installed distribution, or an empty string if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def resident_mb() -> float | None:
    """Return the memory of this process in MiB, or None on a system without /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize() / 1024**2


def peak_mb() -> float:
    """Return the largest memory that this process had so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
