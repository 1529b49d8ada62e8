"""How much memory this process has and had."""

import resource
import sys
from pathlib import Path


def resident_mb() -> float | None:
    """Memory of this process now; None where there is no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize() / 1024**2


def peak_mb() -> float:
    """The most that this process had so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
