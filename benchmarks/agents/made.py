"""Logs and JSON that are made up, each with one line or record that answers a question.

What surrounds the answer is of the same kind: lines of the same services, records with the same fields. Each
answer is asked for twice: in other words, and in its own. Nothing here is from a real system.
"""

import json
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Result(NamedTuple):
    """A tool's result. kind: of it. answers: the passages that answer the question, all of them needed."""

    kind: str
    text: str
    question: str
    answers: tuple[str, ...]


_IN_ITS_WORDS = "asked in its words"
_PARTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_FIELDS = ("name", "city", "plan", "seats", "renewal", "contact", "note")


def logs(n: int, lines: int, rng: random.Random) -> Iterator[Result]:
    """Yield `n` logs of so many lines, each with two questions: in other words, and in those of the log."""
    for number in range(n):
        event, *questions = _PARTS["events"][number % len(_PARTS["events"])]
        told = _filled(event, rng)
        written = [_filled(rng.choice(_PARTS["noise"]), rng) for _ in range(lines - 1)]
        written.insert(rng.randrange(lines), told)
        start = rng.randrange(80_000)
        stamped = [f"2026-03-02T{_clock(start + 2 * i)}Z {line}" for i, line in enumerate(written)]
        for kind, question in zip(("log", f"log, {_IN_ITS_WORDS}"), questions, strict=True):
            yield Result(kind, "\n".join(stamped), question, (told,))


def records(n: int, rows: int, rng: random.Random) -> Iterator[Result]:
    """Yield `n` replies of an API with so many records, each with two questions; every second is indented."""
    for number in range(n):
        fact, *questions = _PARTS["facts"][number % len(_PARTS["facts"])]
        customers = [_customer(rng) for _ in range(rows)]
        meant = rng.choice(customers)
        meant["note"] = fact
        reply = {"page": 1, "pages": 7, "customers": customers, "took_ms": rng.randrange(90)}
        text = json.dumps(reply, ensure_ascii=False, indent=2 if number % 2 else None)
        for kind, question in zip(("JSON", f"JSON, {_IN_ITS_WORDS}"), questions, strict=True):
            yield Result(kind, text, question, (str(meant["name"]), fact))


def _customer(rng: random.Random) -> dict[str, Any]:
    name = f"{rng.choice(_PARTS['first'])} {rng.choice(_PARTS['second'])} {rng.randrange(10, 99)}"
    values = (
        name,
        rng.choice(_PARTS["cities"]),
        rng.choice(("free", "team", "business")),
        rng.randrange(1, 400),
        f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}",
        f"office@{name.lower().replace(' ', '-')}.example",
        rng.choice(_PARTS["notes"]),
    )
    return dict(zip(_FIELDS, values, strict=True))


def _clock(seconds: int) -> str:
    return f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _filled(pattern: str, rng: random.Random) -> str:
    return pattern.format(
        n=rng.randrange(1_000, 99_999),
        m=rng.randrange(100, 999),
        ms=rng.randrange(3, 4_000),
        d=rng.randrange(1, 9),
        dd=rng.randrange(10, 28),
    )
