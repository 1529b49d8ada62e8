"""Rows and settings that another program has changed give the same results, or one error that names them."""

import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from precise_rag.errors import IndexFormatError
from precise_rag.index import DatabaseIndex, load_index
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

DOCUMENTS = [
    Document("a", "# Pets\n\nThe cat sleeps on a mat. The dog barks at it.", {"year": 1}),
    Document("b", "Banks raise rates. Savers are glad."),
]
MOST_BYTES = 64 * 2**20
TEXTS = ("[]", "{", "null", "", "x", '{"a": ' + "[" * 50_000)
NUMBERS = (-1, 2**31 - 1)
PLACES = ("start", "n_tokens", "passage_start", "passage_end")
PACKED = (
    b"",
    b"\0",
    bytes(8),
    bytes(400),
    bytes([255, 255, 255, 127] * 40),
    np.full(400, -1, "<i4").tobytes(),
)
POSTGRES = [
    *(("sentences", name, number) for name in (*PLACES, "stop", "place") for number in NUMBERS),
    *(("documents", "metadata", text) for text in TEXTS),
    ("sentences", "text", ""),
    ("sentences", "terms", [-1]),
    ("postings", "weight", float("nan")),
    *(("sentences", "counted", value) for value in PACKED),
    ("documents", "size", -(2**31)),
]
SETTINGS: list[tuple[tuple[str, ...], object]] = [
    *((("settings", "alpha"), value) for value in ("x", 7, None, True, 1e400, [])),
    *((("settings", "pool"), value) for value in (-1, 0, 0.5, "9", 10**400)),
    *(
        (("settings", name), 10**30)
        for name in ("precision", "passages", "stop_words", "returns", "headings")
    ),
    (("settings", "unknown"), 1),
    (("settings",), []),
    (("settings",), None),
    (("encoder",), None),
    (("encoder", "name"), 3),
    (("encoder", "name"), None),
    ((), []),
    ((), "x"),
]


def used(index: DatabaseIndex, top_k: int = 9) -> Any:
    """What reading gives, in a form that can be compared."""
    found = index.search("Which cat sleeps on a mat?", top_k, returns="sentence")
    wide = index.search("Which cat sleeps on a mat?", top_k, returns="passage")
    return (
        {(c.doc_id, c.text, round(c.score, 3), c.n_tokens, str(dict(c.metadata))) for c in found},
        {(c.doc_id, c.text, c.n_tokens) for c in wide},
        sorted(stretch.text for stretch in index.neighbours(found, 2)),
        sorted(index.document_ids),
        index.empty_document_ids,
        [index.document(name) for name in "ab"],
    )


def check(location: str, before: Any, damage: object) -> bool:
    """Whether reading is one error of ours; fails unless it gives what it gave before, in bounded memory."""
    tracemalloc.start()
    try:
        found = used(DatabaseIndex(location, HashEncoder(16)))
    except IndexFormatError as error:
        found = str(error)
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < MOST_BYTES, damage
    if not isinstance(found, str):
        assert found == before, damage
        return False
    assert location.rpartition("=")[2] in found, damage
    assert "the column" in found, damage
    return True


def test_a_damaged_cell_in_postgresql_is_an_error(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    location = f"{postgres}&collection=damaged"
    index = DatabaseIndex.build(DOCUMENTS, HashEncoder(16), location=location)
    before, n_errors = used(index), 0
    with psycopg.connect(postgres, autocommit=True) as connection:
        for table, column, value in POSTGRES:
            name, key = f"damaged_{table}", "sentence" if table == "postings" else "key"
            connection.execute(f"CREATE TABLE kept AS SELECT * FROM {name}")
            connection.execute(
                f"UPDATE {name} SET {column} = %s WHERE {key} = (SELECT min({key}) FROM {name})", [value]
            )
            n_errors += check(location, before, (table, column, value))
            more = "AND kept.term = x.term" if table == "postings" else ""
            connection.execute(
                f"UPDATE {name} x SET {column} = kept.{column} FROM kept WHERE kept.{key} = x.{key} {more}"
            )
            connection.execute("DROP TABLE kept")
    assert n_errors > len(POSTGRES) / 2
    assert not check(location, before, "restored")


def changed(made: Mapping[str, Any], path: tuple[str, ...], value: object) -> str:
    """Settings as JSON, with another value at a path."""
    if not path:
        return json.dumps(value)
    copied = json.loads(json.dumps(made))
    part = copied
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return json.dumps(copied)


def refused(location: str, damage: object) -> None:
    for opened in (lambda: DatabaseIndex(location, HashEncoder(16)), lambda: load_index(location)):
        with pytest.raises(IndexFormatError, match="settings"):
            print(damage, opened())


def test_damaged_settings_in_postgresql_are_an_error(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    location = f"{postgres}&collection=set"
    before = used(DatabaseIndex.build(DOCUMENTS, HashEncoder(16), location=location))
    with psycopg.connect(postgres, autocommit=True) as connection:

        def write(settings: str) -> None:
            connection.execute("UPDATE set_settings SET settings = %s", [settings])

        (text,) = connection.execute("SELECT settings FROM set_settings").fetchone()
        for path, value in SETTINGS:
            write(changed(json.loads(text), path, value))
            refused(location, (path, value))
        for unread in ("", "{", "[" * 100_000):
            write(unread)
            refused(location, unread[:9])
        write(changed(json.loads(text), ("settings", "pool"), 10**12))
        assert used(DatabaseIndex(location, HashEncoder(16)), 10**12) == before
