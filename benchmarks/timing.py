"""Seconds of work: ways in turn, and searches one by one."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Took(NamedTuple):
    """What some work took, on the clock and of the CPU, in seconds; result: what it returned."""

    seconds: float
    cpu: float
    result: Any = None


class Searched(NamedTuple):
    """found: for each query, the ids. seconds: of each. cpu: seconds for all."""

    found: list[set[str]]
    seconds: list[float]
    cpu: float


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


def searched(search: Callable[[str, Any], Sequence[Any]], pairs: Sequence[tuple[str, Any]]) -> Searched:
    """Search for queries with their vectors, one after the other. search: returns candidates or ids."""
    took = [timed(lambda query=query, vector=vector: search(query, vector)) for query, vector in pairs]
    found = [{str(getattr(one, "id", one)) for one in each.result} for each in took]
    return Searched(found, [each.seconds for each in took], sum(each.cpu for each in took))


def percentiles(seconds: Sequence[float], name: str = "", digits: int = 1) -> dict[str, float]:
    """p50 and p95 in milliseconds."""
    prefix = f"{name}, " if name else ""
    return {f"{prefix}p{q} ms": round(1000 * float(np.percentile(seconds, q)), digits) for q in (50, 95)}
