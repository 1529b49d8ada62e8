"""Every compiled pattern of the packages takes linear time, whatever text it is given, and structure does."""

import importlib
import io
import itertools
import pkgutil
import random
import re
import time
import timeit
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from precise_rag.documents.conversion_process import as_seen
from precise_rag.structure import read_structure
from precise_rag.structure.marks import DELIMITER_ROW

PACKAGES = [importlib.import_module(n) for n in ("precise_rag", "llamaindex_precise", "langchain_precise")]
SOURCES = "\n".join(
    file.read_text("utf-8") for package in PACKAGES for file in Path(package.__path__[0]).rglob("*.py")
)
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


def modules() -> Iterator[ModuleType]:
    """All modules, but those of torch where it is not installed."""
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                try:
                    yield importlib.import_module(found.name)
                except ModuleNotFoundError as error:
                    if error.name != "torch":
                        raise


def compiled_patterns() -> dict[str, re.Pattern[str]]:
    """The patterns in the variables of all modules, each under one name."""
    named: dict[re.Pattern[str], str] = {}
    for module, (name, value) in ((m, item) for m in modules() for item in vars(m).items()):
        for pattern in patterns_in(value):
            named.setdefault(pattern, f"{module.__name__}.{name}")
    return {f"{name}#{number}": pattern for number, (pattern, name) in enumerate(named.items())}


def repeated_units(pattern: re.Pattern[str]) -> list[str]:
    """What is repeated to make texts: characters that the pattern names, and words of them."""
    alphabet = sorted({*pattern.pattern, *COMMON})
    draw = random.Random(0)
    single = draw.sample(alphabet, min(len(alphabet), UNITS))
    words = {"".join(draw.choices(alphabet, k=draw.randint(2, 5))) for _ in range(UNITS)}
    return [*single, *(f"{character}   " for character in single), *sorted(words)]


def grows_too_fast(apply: Callable[[str], object], unit: str, end: str, length: int = LENGTH) -> bool:
    def cpu_seconds(length: int) -> float:
        text = unit * (length // len(unit)) + end
        return min(timeit.repeat(lambda: apply(text), timer=time.thread_time, number=1, repeat=2))

    spent = cpu_seconds(length * LONGER)
    return spent > NOTICED and spent > 3 * LONGER * cpu_seconds(length)


def slow_text(pattern: re.Pattern[str], method: str) -> tuple[str, str] | None:
    """What is repeated and what ends a text that takes too long, or None if none does."""
    apply = pattern.match if method == "match" else pattern.findall
    texts = itertools.product(repeated_units(pattern), ("", "x", "\n\0"))
    return next(((unit, end) for unit, end in texts if grows_too_fast(apply, unit, end)), None)


def methods(qualified: str) -> tuple[str, ...]:
    """How a pattern is applied: at one place of a text, or everywhere in it, too."""
    name = qualified.partition("#")[0].rpartition(".")[2]
    used = set(re.findall(rf"\b{name}\b(?:\[[^\]\n]+\])?\.(\w+)", SOURCES))
    return ("match",) if used and used <= {"match", "fullmatch"} else ("match", "search")


PATTERNS = compiled_patterns()


def test_the_patterns_of_the_packages_are_collected() -> None:
    assert len(PATTERNS) > 50
    assert DELIMITER_ROW in PATTERNS.values()


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_linear_time(name: str) -> None:
    assert [slow_text(PATTERNS[name], method) for method in methods(name)] == [None] * len(methods(name))


@pytest.mark.parametrize(
    ("slow", "method"), [(r"[ \t]*\|?[ \t]*-(?:\|[ \t]*-*[ \t]*)+\Z", "match"), (r"a*\d", "search")]
)
def test_patterns_that_take_longer_are_noticed(slow: str, method: str) -> None:
    assert slow_text(re.compile(slow), method)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        *(("", "|-|-|\n"), ("|a||\n|-|-|\n", "|a||\n"), ("# x\n\n> ", "a\n"), ("# x\n\n- ", "a\n")),
        *(("<html>", "<dl><dt>a"), ("<html><table>", "<tr><td rowspan=99 colspan=99>a")),
    ],
)
def test_a_text_of_parts_that_come_again_is_read_in_linear_time(head: str, unit: str) -> None:
    fresh = itertools.count()  # as the same text is read only once
    assert not grows_too_fast(lambda text: read_structure(f"{head}{text}{next(fresh)}"), unit, "", 25_000)
    tracemalloc.start()
    read_structure(head + 1_000 * unit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000 * 1_000 * len(unit)


def test_a_long_row_of_html_is_read_in_linear_time() -> None:
    pytest.importorskip("bs4")
    read = as_seen(io.BytesIO(b"<table><tr><td rowspan='\xc2\xb2'>a</td><td colspan=2>b</td></tr></table>"))
    assert read.read() == b"<table><tr><td>a</td><td>b</td><td>b</td></tr></table>"
    row = "<table><tr>{}</tr></table>".format
    assert not grows_too_fast(lambda text: as_seen(io.BytesIO(row(text).encode())), "<td>a</td>", "", 25_000)
