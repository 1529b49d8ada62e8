"""Every compiled pattern of the packages takes linear time, whatever text it is given."""

import importlib
import itertools
import pkgutil
import random
import re
import re._constants as codes
import re._parser as parser
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from precise_rag import split_sentences
from precise_rag.structure.marks import DELIMITER_ROW

PACKAGES = ("precise_rag", "llamaindex_precise", "langchain_precise")
LENGTH = 2_000
LONGER = 8
"""How many times as long the second text is: a linear pattern takes 8 times as long, a quadratic one 64."""
NOTICED = 0.02
"""CPU-seconds that the longer text must take before its growth is looked at: less is noise, and linear."""
UNITS = 30
SAMPLES = {
    codes.CATEGORY_DIGIT: "7",
    codes.CATEGORY_NOT_DIGIT: "-",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_WORD: "b",
    codes.CATEGORY_NOT_WORD: "!",
}


def patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from patterns_in(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from patterns_in(item)


def compiled_patterns() -> dict[str, re.Pattern[str]]:
    """Return the patterns of strings in the variables of all modules, each under one name."""
    named: dict[re.Pattern[str], str] = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        for module_name in [package, *(m.name for m in pkgutil.walk_packages(root.__path__, f"{package}."))]:
            if module_name.rpartition(".")[2] == "__main__":
                continue
            module = importlib.import_module(module_name)
            for name, value in vars(module).items():
                for pattern in patterns_in(value):
                    if isinstance(pattern.pattern, str):
                        named.setdefault(pattern, f"{module_name}.{name}")
    return {f"{name}#{number}": pattern for number, (pattern, name) in enumerate(named.items())}


def characters(parsed: object) -> Iterator[str]:
    """Yield a sample of the characters that a parsed pattern can read."""
    if isinstance(parsed, parser.SubPattern):
        for item in parsed:
            yield from characters(item)
    elif isinstance(parsed, tuple | list) and parsed:
        match parsed:
            case (codes.LITERAL | codes.NOT_LITERAL, int(code)):
                yield chr(code)
            case (codes.RANGE, (int(first), int(last))):
                yield from {chr(first), chr(last)}
            case (codes.CATEGORY, category):
                yield SAMPLES.get(category, "a")
            case _:
                for item in parsed:
                    yield from characters(item)


def repeated_units(pattern: re.Pattern[str]) -> list[str]:
    """Return what is repeated to make texts: single characters of the pattern and a sample of words."""
    alphabet = sorted({*characters(parser.parse(pattern.pattern, pattern.flags)), "a", " "})
    draw = random.Random(0)
    words = {"".join(draw.choices(alphabet, k=draw.randint(2, 5))) for _ in range(UNITS)}
    single = draw.sample(alphabet, min(len(alphabet), UNITS))
    runs = [f"{first}{' ' * 3}" for first in draw.sample(alphabet, min(len(alphabet), 20))]
    return list(dict.fromkeys([*single, *runs, *sorted(words)]))


class TooLong(Exception):
    """A pattern did not end within its CPU-time."""


@contextmanager
def limited_cpu(seconds: float) -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooLong

    former = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)


def cpu_seconds(pattern: re.Pattern[str], method: str, text: str) -> float:
    """Return the shorter of two measurements, or infinity for a pattern that does not end."""
    try:
        with limited_cpu(3.0):
            spent = []
            for _ in range(2):
                start = time.thread_time()
                if method == "match":
                    pattern.match(text)
                else:
                    sum(1 for _ in pattern.finditer(text))
                spent.append(time.thread_time() - start)
            return min(spent)
    except TooLong:
        return float("inf")


def grows_too_fast(pattern: re.Pattern[str], method: str, unit: str, end: str) -> bool:
    longer, shorter = ((unit * (n // len(unit))) + end for n in (LENGTH * LONGER, LENGTH))
    spent = cpu_seconds(pattern, method, longer)
    if spent == float("inf"):
        return True
    return spent > NOTICED and spent > 3 * LONGER * cpu_seconds(pattern, method, shorter)


def slow_texts(pattern: re.Pattern[str], method: str) -> Iterator[tuple[str, str]]:
    for unit, end in itertools.product(repeated_units(pattern), ("", "x", "\n\0")):
        if grows_too_fast(pattern, method, unit, end):
            yield unit, end


SOURCES = "\n".join(
    file.read_text("utf-8")
    for package in PACKAGES
    for file in Path(importlib.import_module(package).__path__[0]).rglob("*.py")
)


def methods(qualified: str) -> tuple[str, ...]:
    """Return how a pattern is applied: at one place of a text, or everywhere in it."""
    name = qualified.partition("#")[0].rpartition(".")[2]
    used = set(re.findall(rf"\b{name}\b(?:\[[^\]\n]+\])?\.(\w+)", SOURCES))
    everywhere = {"search", "sub", "subn", "split", "findall", "finditer"}
    return ("match", "search") if used & everywhere or not used else ("match",)


PATTERNS = compiled_patterns()


def test_the_patterns_of_the_packages_are_collected():
    assert len(PATTERNS) > 50
    assert DELIMITER_ROW in PATTERNS.values()


def test_an_ordinary_sparse_table_is_split():
    text = "| name |\n| - " + "| " * 170 + " x\n\nThe lamp is lit at dusk.\n"
    assert [text[span.start : span.end].strip() for span in split_sentences(text)][
        -1
    ] == "The lamp is lit at dusk."


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of CPU-time")
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_linear_time(name):
    for method in methods(name):
        assert not list(itertools.islice(slow_texts(PATTERNS[name], method), 1))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of CPU-time")
@pytest.mark.parametrize(
    ("slow", "method"),
    [(r"(?: *a *)+b", "match"), (r"[ \t]*\|?[ \t]*-(?:\|[ \t]*-*[ \t]*)+\Z", "match"), (r"a*\d", "search")],
)
def test_patterns_that_take_longer_are_noticed(slow, method):
    assert next(slow_texts(re.compile(slow), method), None) is not None
