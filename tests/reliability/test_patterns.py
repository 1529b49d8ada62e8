"""Every compiled pattern of the packages takes linear time, whatever text it is given, and structure does."""

import ast
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
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from precise_rag import split_sentences
from precise_rag.documents.conversion_process import as_seen
from precise_rag.evidence.records import records
from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.structure import read_structure
from precise_rag.structure.marks import HEAD_RULE
from precise_rag.types import Candidate, Stretch

PACKAGES = [importlib.import_module(n) for n in ("precise_rag", "llamaindex_precise", "langchain_precise")]
SOURCES = "\n".join(
    file.read_text("utf-8") for package in PACKAGES for file in Path(package.__path__[0]).rglob("*.py")
)
PARSER, COMPILER = map(importlib.import_module, ("re._parser", "re._compiler"))
LENGTH = 1_000
LONGER = 8
"""How many times as long the second text is: a linear pattern takes 8 times as long, a quadratic one 64."""
NOTICED = 0.005
"""CPU-seconds that the longer text must take before its growth is looked at: less is noise, and linear."""
UNITS, EXAMPLES = 20, 8
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
    """The patterns in the variables of all modules, and in calls such as `re.search`, each under one name."""
    named: dict[re.Pattern[str], str] = {}
    for module, (name, value) in ((m, item) for m in modules() for item in vars(m).items()):
        for pattern in patterns_in(value):
            named.setdefault(pattern, f"{module.__name__}.{name}")
    for node in ast.walk(ast.parse(SOURCES)):
        match node:
            case ast.Call(ast.Attribute(ast.Name("re"), call), [ast.Constant(str(written)), *_]):
                if call not in ("compile", "escape"):
                    named.setdefault(re.compile(written, re.S), f"re.{call}")
    return {f"{name}#{number}": pattern for number, (pattern, name) in enumerate(named.items())}


class Example:
    """A text that a pattern may find. items: what stands before an item of a repetition, and the item."""

    def __init__(self, pattern: re.Pattern[str], draw: random.Random) -> None:
        self.text, self.items, self._draw = "", set[tuple[str, str]](), draw
        self.alphabet, self._groups = sorted({*pattern.pattern, *COMMON}), dict[int, str]()
        self._write(PARSER.parse(pattern.pattern, pattern.flags))

    def _write(self, parsed: Any) -> None:
        for kind, value in parsed:
            before = self.text
            match str(kind), value:
                case "LITERAL", letter:
                    self.text += chr(letter)
                case "BRANCH", (_, ways):
                    self._write(self._draw.choice(ways))
                case ("ATOMIC_GROUP", group) | ("ASSERT", (-1, group)):
                    self._write(group)
                case "SUBPATTERN", (number, *_, group):
                    self._write(group)
                    self._groups[number] = self.text.removeprefix(before)
                case "GROUPREF", number:
                    self.text += self._groups.get(number, "")
                case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT", (least, most, item):
                    for _ in range(self._draw.randint(least, min(int(most), least + 2))):
                        before = self.text
                        self._write(item)
                        self.items.add((before, self.text.removeprefix(before)))
                case "ANY" | "IN" | "NOT_LITERAL", _:
                    one = COMPILER.compile(PARSER.SubPattern(parsed.state, [(kind, value)]))
                    self.text += self._draw.choice([c for c in self.alphabet if one.match(c)] or ["a"])


def repetitions(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """What begins a text, and what is repeated: characters that the pattern names, and parts of examples."""
    draw = random.Random(0)
    examples = [Example(pattern, draw) for _ in range(EXAMPLES)]
    items = sorted({item for example in examples for item in example.items})
    single = draw.choices(examples[0].alphabet, k=UNITS)
    units = {*single, *(f"{one}   " for one in single), *(one.text for one in examples), *dict(items)}
    return [("", unit) for unit in sorted(units - {""})] + [item for item in items if item[1]]


def grows_too_fast(
    apply: Callable[[str], object], unit: str, end: str, length: int = LENGTH, head: str = ""
) -> bool:
    def cpu_seconds(length: int, repeat: int) -> float:
        text = head + unit * (length // len(unit)) + end
        return min(timeit.repeat(lambda: apply(text), timer=time.thread_time, number=1, repeat=repeat))

    if cpu_seconds(length * LONGER, 1) <= NOTICED:
        return False
    spent = cpu_seconds(length * LONGER, 2)
    return spent > NOTICED and spent > 3 * LONGER * cpu_seconds(length, 2)


def slow_text(pattern: re.Pattern[str], method: str) -> tuple[str, str, str] | None:
    """What begins, is repeated in and ends a text that takes too long, or None if none does."""
    apply = getattr(pattern, method)
    texts = itertools.product(repetitions(pattern), ("", "x", "\n\0", ",;"))
    return next(((*one, end) for one, end in texts if grows_too_fast(apply, one[1], end, head=one[0])), None)


def method_of(qualified: str) -> str:
    """How a pattern is applied: to a whole text, at one place of it, or everywhere in it."""
    name = qualified.partition("#")[0].rpartition(".")[2]
    used = set(re.findall(rf"\b{name}\b(?:\[[^\]\n]+\])?\.(\w+)", SOURCES))
    return "findall" if not used or used - {"match", "fullmatch"} else max(used, key=len)


PATTERNS = compiled_patterns()


def test_the_patterns_of_the_packages_are_collected() -> None:
    assert len(PATTERNS) > 50
    assert HEAD_RULE in PATTERNS.values()


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_linear_time(name: str) -> None:
    assert slow_text(PATTERNS[name], method_of(name)) is None


@pytest.mark.parametrize(
    ("slow", "method"),
    [
        *((r"[ \t]*\|?[ \t]*-(?:\|[ \t]*-*[ \t]*)+\Z", "match"), (r"a*\d", "findall")),
        *((r"<v[ \t]+([^<>\n]+)>", "match"), (r"(?s)\{.*\}", "findall"), (r"<v[^>]*>", "findall")),
    ],
)
def test_patterns_that_take_longer_are_noticed(slow: str, method: str) -> None:
    assert slow_text(re.compile(slow), method)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        *(("", "|-|-|\n"), ("|a||\n|-|-|\n", "|a||\n"), ("# x\n\n> ", "a\n"), ("# x\n\n- ", "a\n")),
        *(("<html>", "<dl><dt>a"), ("<html><table>", "<tr><td rowspan=99 colspan=99>a")),
        ('{"a": 1}\n{"b": "', '\\"'),
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


def test_a_table_with_one_long_row_and_one_with_many_columns_are_read_in_linear_time() -> None:
    fresh = itertools.count()

    def row(text: str) -> object:
        return split_sentences(f"|a|b|\n|-|-|\n{text}{'|a' * (len(text) // 3)}{next(fresh)}\n")

    def columns(text: str) -> object:
        border = text.replace("a", "=")
        return split_sentences(f"{border}\n{text}\n{border}\n{text}{next(fresh)}\n{border}\n")

    assert not grows_too_fast(row, "|b|c|\n", "", 25_000)
    assert not grows_too_fast(columns, "a  ", "", 10_000)


def test_records_are_found_among_many_paragraphs_in_linear_time() -> None:
    @cache
    def stretch(text: str) -> Stretch:
        return split_into_sentences(Candidate("a", 0, len(text), text, 0.0, "rank"))

    assert not grows_too_fast(lambda text: records(stretch(text)), "It is late.\n\n", "", 40_000)


@pytest.mark.parametrize("unit", ["<td>a</td>", "<a href=/x>a</a>", "x<sup>2</sup> ", "<i hidden>b</i>c "])
def test_what_is_side_by_side_in_html_is_read_in_linear_time(unit: str) -> None:
    pytest.importorskip("bs4")
    read = as_seen(io.BytesIO(b"<table><tr><td rowspan='\xc2\xb2'>a</td><td colspan=2>b</td></tr></table>"))
    assert b"<table><tr><td>a</td><td>b</td><td>b</td></tr></table>" in read.read()
    row = ("<table><tr>{}</tr></table>" if "<td>" in unit else "<p>{}").format
    assert not grows_too_fast(lambda text: as_seen(io.BytesIO(row(text).encode())), unit, "", 25_000)
