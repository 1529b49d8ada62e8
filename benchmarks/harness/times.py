"""Seconds of work, and the memory of this process."""

import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Took(NamedTuple):
    """What some work took, on the clock and of the CPU, in seconds; result: what it returned."""

    seconds: float
    cpu: float
    result: Any = None


def timed(work: Callable[[], Any]) -> Took:
    """Do some work once."""
    started, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Took(time.perf_counter() - started, time.process_time() - cpu, result)


def in_turn(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[Took]]:
    """Do each way in turn, round by round, so that a busy machine slows all of them alike."""
    spent: dict[str, list[Took]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            spent[name].append(timed(work))
    return spent


def peak_mb() -> float:
    """Return the largest memory that this process had so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
