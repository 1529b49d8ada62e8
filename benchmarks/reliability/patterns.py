"""Regular expressions of the packages whose time grows faster than their text.

Every compiled pattern of every module is given repeated characters, pairs of them and words of the pattern
itself, after several beginnings, at two sizes. Patterns inside functions are not seen. Prints those that
take more than 2 ms and whose time grows with an exponent above 1.6.
"""

import importlib
import math
import pkgutil
import re
import signal
import time
from collections.abc import Iterator
from itertools import product

from benchmarks import record

PACKAGES = ("precise_rag", "llamaindex_precise", "langchain_precise")
MARKS = [*"aA0 \t\n.,;:!?-_'\"()[]{}<>|/*#`=+@&%$\\", "é", "天", "\u0301", "😀", "\u200b", "\u2029", "\r"]
WORDS = ["ab ", "0.", "1, ", "[1]", "](", "A. ", "http://", "<a ", '{"', '\\"', "- ", "\r\n", "score "]
FEW = ["a", "0", " ", "\n", ".", ",", "-", '"', "[", "<", "\\", "="]
SIZE, FACTOR, LIMIT = 2_000, 4, 5.0


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """The place and the pattern, each pattern once."""
    seen: set[tuple[str, int]] = set()
    for package in map(importlib.import_module, PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                for pattern in found_in(value):
                    if (key := (pattern.pattern, pattern.flags)) not in seen:
                        seen.add(key)
                        yield f"{module.name}.{name}", pattern


def found_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        yield from (pattern for item in value.values() for pattern in found_in(item))
    elif isinstance(value, tuple | list):
        yield from (pattern for item in value for pattern in found_in(item))


def attacks(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str, str]]:
    """Beginning, two repeated parts and the end of a text."""
    own = sorted(set(re.findall(r"[A-Za-z]{2,}", pattern.pattern)))[:8]
    for start, unit in product(["", *own, '"', "[", "{", "<", "\n", "1"], [*MARKS, *WORDS, *own]):
        yield start, unit, "", "\0"
    for first, second in product([*FEW, *own], FEW):
        yield "", first + second, "", "\0"
        yield "", first, second, "\0"
        yield own[0] if own else "", first, second, "-1"


def text_of(attack: tuple[str, str, str, str], size: int) -> str:
    start, first, second, end = attack
    half = size // 2 if second else size
    return start + first * (half // len(first)) + (second * half)[:half] + end


def seconds(pattern: re.Pattern[str], text: str) -> float:
    start = time.perf_counter()
    for _ in pattern.finditer(text):
        pass
    pattern.fullmatch(text)
    return time.perf_counter() - start


def exponent(pattern: re.Pattern[str], attack: tuple[str, str, str, str]) -> float:
    """How the time grows; 0 if it stays below 2 ms, or if larger texts do not confirm it."""
    if seconds(pattern, text_of(attack, SIZE * FACTOR)) < 2e-3:
        return 0.0
    sizes = (SIZE * FACTOR, SIZE * FACTOR**2)
    small, large = (min(seconds(pattern, text_of(attack, size)) for _ in range(5)) for size in sizes)
    return math.log(large / small) / math.log(FACTOR)


def main() -> None:
    record.new_parser(__spec__.name, __doc__, data=False).parse_args()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    n_patterns = n_slow = 0
    for place, pattern in patterns():
        n_patterns += 1
        worst = (0.0, "")
        for attack in attacks(pattern):
            signal.setitimer(signal.ITIMER_REAL, LIMIT)
            try:
                growth = exponent(pattern, attack)
            except KeyboardInterrupt:
                worst = max(worst, (math.inf, repr(attack)))
                break
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if growth > 1.6:
                worst = max(worst, (growth, repr(attack)))
        if worst[1]:
            n_slow += 1
            print(f"{place}: exponent {worst[0]:.2f} for {worst[1]}: {pattern.pattern[:80]!r}", flush=True)
    print(f"{n_patterns} patterns, {n_slow} of them slow")


if __name__ == "__main__":
    main()
