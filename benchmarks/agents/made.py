"""Logs and JSON that are made up, each with one line or record that answers a question.

What surrounds the answer is of the same kind: lines of the same services, records with the same fields. Each
answer is asked for twice: in other words, and in its own. Nothing here is from a real system.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple


class Result(NamedTuple):
    """A tool's result. kind: of it. answers: the passages that answer the question, all of them needed."""

    kind: str
    text: str
    question: str
    answers: tuple[str, ...]


_IN_ITS_WORDS = "asked in its words"
_NOISE = (
    "INFO  gateway   GET /v1/orders/{n} 200 {ms}ms",
    "INFO  gateway   POST /v1/carts/{n}/items 201 {ms}ms",
    "DEBUG scheduler picked job {n} from queue default, {ms} left",
    "INFO  billing   invoice {n} was sent to customer {m}",
    "WARN  cache     eviction of {n} entries took {ms}ms",
    "INFO  auth      session of user {m} was renewed",
    "DEBUG storage   compaction of segment {n} finished in {ms}ms",
    "WARN  gateway   slow request GET /v1/search?q={n} {ms}ms",
    "INFO  mailer    message {n} was accepted by relay{d}",
    "ERROR gateway   GET /v1/orders/{n} 404 order not found",
    "INFO  health    all {d} probes passed",
    "WARN  auth      wrong password for user {m}, attempt {d} of 5",
)
_EVENTS = (
    (
        "ERROR storage   write to /data/vol{d} failed: no space left on device",
        "Which volume is full?",
        "Where did a write fail for want of space?",
    ),
    (
        "ERROR billing   card processor refused us: certificate expired on 2026-02-{dd}",
        "Why do payments fail?",
        "Which certificate expired?",
    ),
    (
        "FATAL scheduler process {n} was killed: out of memory at {ms} MiB",
        "Which process used too much memory?",
        "Which process was killed?",
    ),
    (
        "WARN  auth      account {m} is locked after five wrong passwords",
        "Whose account was locked?",
        "Which account is locked?",
    ),
    (
        "INFO  deploy    release 4.{d}.{dd} is live in region eu-{d}",
        "Which version was rolled out?",
        "Which release is live?",
    ),
    (
        "ERROR mailer    relay{d} greylisted us, next attempt in {ms} s",
        "Why was mail delayed?",
        "Which relay makes the mailer wait for the next attempt?",
    ),
    (
        "INFO  database  failover: replica db-{d} became the primary",
        "Which database server took over?",
        "Which replica became the primary?",
    ),
    (
        "ERROR search    index shard {n} is corrupt and was taken offline",
        "Which shard was damaged?",
        "Which index shard is corrupt?",
    ),
    (
        "WARN  network   packet loss of {dd} % towards zone {d}",
        "Where is the network unreliable?",
        "Where are packets of the network lost?",
    ),
    (
        "INFO  operator  maria raised the limit of uploads to {ms} MB",
        "Who changed the upload limit?",
        "Who raised the limit of uploads?",
    ),
)
_FIELDS = ("name", "city", "plan", "seats", "renewal", "contact", "note")
_NOTES = (
    "asked for an invoice by post",
    "prefers to be called in the morning",
    "was a pilot customer",
    "uses the export every week",
    "has two subsidiaries",
    "moved from the old plan",
    "is waiting for the new dashboard",
)
_FACTS = (
    (
        "threatened to leave because the export is slow",
        "Which customer may cancel?",
        "Who threatened to leave?",
    ),
    ("was overcharged in March and wants the money back", "Who is owed a refund?", "Who was overcharged?"),
    (
        "stores data of patients, ask the lawyer first",
        "Which customer has health data?",
        "Who stores data of patients?",
    ),
    (
        "gets forty percent off until the end of the year",
        "Who has a special discount?",
        "Who gets forty percent off?",
    ),
    (
        "reported a hole in the login page",
        "Which customer found a security problem?",
        "Who reported a hole in the login page?",
    ),
    ("has no backup since the migration", "Whose data is not being saved?", "Who has no backup?"),
    ("speaks only Portuguese", "Whom must we write to in another language?", "Who speaks Portuguese?"),
    (
        "was bought by a competitor last week",
        "Which customer changed owners?",
        "Who was bought by a competitor?",
    ),
)
_CITIES = ("Lyon", "Graz", "Porto", "Turku", "Ghent", "Split", "Cork", "Brno", "Malmö", "Riga")
_FIRST = ("Anker", "Birk", "Delta", "Ember", "Falk", "Gannet", "Heron", "Iris", "Juno", "Kestrel", "Linden")
_SECOND = ("Logistics", "Foods", "Media", "Optics", "Paper", "Robotics", "Textiles", "Travel", "Works")


def logs(n: int, lines: int, rng: random.Random) -> Iterator[Result]:
    """Yield `n` logs of so many lines, each with two questions: in other words, and in those of the log."""
    for number in range(n):
        event, *questions = _EVENTS[number % len(_EVENTS)]
        told = _filled(event, rng)
        written = [_filled(rng.choice(_NOISE), rng) for _ in range(lines - 1)]
        written.insert(rng.randrange(lines), told)
        start = rng.randrange(80_000)
        stamped = [f"2026-03-02T{_clock(start + 2 * i)}Z {line}" for i, line in enumerate(written)]
        for kind, question in zip(("log", f"log, {_IN_ITS_WORDS}"), questions, strict=True):
            yield Result(kind, "\n".join(stamped), question, (told,))


def records(n: int, rows: int, rng: random.Random) -> Iterator[Result]:
    """Yield `n` replies of an API with so many records, each with two questions; every second is indented."""
    for number in range(n):
        fact, *questions = _FACTS[number % len(_FACTS)]
        customers = [_customer(rng) for _ in range(rows)]
        meant = rng.choice(customers)
        meant["note"] = fact
        reply = {"page": 1, "pages": 7, "customers": customers, "took_ms": rng.randrange(90)}
        text = json.dumps(reply, ensure_ascii=False, indent=2 if number % 2 else None)
        for kind, question in zip(("JSON", f"JSON, {_IN_ITS_WORDS}"), questions, strict=True):
            yield Result(kind, text, question, (str(meant["name"]), fact))


def _customer(rng: random.Random) -> dict[str, Any]:
    name = f"{rng.choice(_FIRST)} {rng.choice(_SECOND)} {rng.randrange(10, 99)}"
    values = (
        name,
        rng.choice(_CITIES),
        rng.choice(("free", "team", "business")),
        rng.randrange(1, 400),
        f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}",
        f"office@{name.lower().replace(' ', '-')}.example",
        rng.choice(_NOTES),
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
