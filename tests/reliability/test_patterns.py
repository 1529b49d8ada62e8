"""Every compiled pattern of the packages takes linear time, whatever text it is given."""

import importlib
import itertools
import math
import pkgutil
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from precise_rag.structure.marks import DELIMITER_ROW

PACKAGES = ("precise_rag", "llamaindex_precise", "langchain_precise")
SOURCES = [
    file.read_text("utf-8")
    for package in PACKAGES
    for file in Path(importlib.import_module(package).__path__[0]).rglob("*.py")
]
LENGTH = 2_000
LONGER = 8
"""How many times as long the second text is: a linear pattern takes 8 times as long, a quadratic one 64."""
NOTICED = 0.02
"""CPU-seconds that the longer text must take before its growth is looked at: less is noise, and linear."""
UNITS = 30
COMMON = " \t\n!-7Aab\u2028é"


def patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        yield from patterns_in(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from patterns_in(item)


def compiled_patterns() -> dict[str, re.Pattern[str]]:
    """Return the patterns in the variables of all modules, each under one name."""
    named: dict[re.Pattern[str], str] = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        for found in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                for name, value in vars(importlib.import_module(found.name)).items():
                    for pattern in patterns_in(value):
                        named.setdefault(pattern, f"{found.name}.{name}")
    return {f"{name}#{number}": pattern for number, (pattern, name) in enumerate(named.items())}


def repeated_units(pattern: re.Pattern[str]) -> list[str]:
    """Return what is repeated to make texts: characters that the pattern names, and words of them."""
    alphabet = sorted({*pattern.pattern, *COMMON})
    draw = random.Random(0)
    single = draw.sample(alphabet, min(len(alphabet), UNITS))
    words = {"".join(draw.choices(alphabet, k=draw.randint(2, 5))) for _ in range(UNITS)}
    return [*single, *(f"{character}   " for character in single), *sorted(words)]


@contextmanager
def limited_cpu(seconds: float) -> Iterator[None]:
    """Raises TimeoutError after this much CPU-time."""

    def stop(*_: object) -> None:
        raise TimeoutError

    former = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)


def cpu_seconds(apply: Callable[[str], object], text: str) -> float:
    """Return the shorter of two measurements, or infinity for a pattern that does not end."""
    spent = []
    try:
        with limited_cpu(3.0):
            for _ in range(2):
                start = time.thread_time()
                apply(text)
                spent.append(time.thread_time() - start)
    except TimeoutError:
        return math.inf
    return min(spent)


def grows_too_fast(apply: Callable[[str], object], unit: str, end: str) -> bool:
    spent = cpu_seconds(apply, unit * (LENGTH * LONGER // len(unit)) + end)
    if spent <= NOTICED or spent == math.inf:
        return spent == math.inf
    return spent > 3 * LONGER * cpu_seconds(apply, unit * (LENGTH // len(unit)) + end)


def slow_text(pattern: re.Pattern[str], method: str) -> tuple[str, str] | None:
    """Return what is repeated and what ends a text that takes too long, or None if none does."""
    apply = pattern.match if method == "match" else pattern.findall
    texts = itertools.product(repeated_units(pattern), ("", "x", "\n\0"))
    return next(((unit, end) for unit, end in texts if grows_too_fast(apply, unit, end)), None)


def methods(qualified: str) -> tuple[str, ...]:
    """Return how a pattern is applied: at one place of a text, or everywhere in it, too."""
    name = qualified.partition("#")[0].rpartition(".")[2]
    used = set(re.findall(rf"\b{name}\b(?:\[[^\]\n]+\])?\.(\w+)", "\n".join(SOURCES)))
    return ("match",) if used and used <= {"match", "fullmatch"} else ("match", "search")


PATTERNS = compiled_patterns()


def test_the_patterns_of_the_packages_are_collected() -> None:
    assert len(PATTERNS) > 50
    assert DELIMITER_ROW in PATTERNS.values()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of CPU-time")
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_linear_time(name: str) -> None:
    assert [slow_text(PATTERNS[name], method) for method in methods(name)] == [None] * len(methods(name))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of CPU-time")
@pytest.mark.parametrize(
    ("slow", "method"),
    [(r"(?: *a *)+b", "match"), (r"[ \t]*\|?[ \t]*-(?:\|[ \t]*-*[ \t]*)+\Z", "match"), (r"a*\d", "search")],
)
def test_patterns_that_take_longer_are_noticed(slow: str, method: str) -> None:
    assert slow_text(re.compile(slow), method)
