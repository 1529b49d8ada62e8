"""Settings that another program has changed are one error that names them."""

import json
from typing import Any

import pytest

from precise_rag.errors import IndexFormatError
from precise_rag.index import DatabaseIndex, load_index
from precise_rag.testing import HashEncoder
from precise_rag.types import Document


def with_setting(name: str, value: object) -> Any:
    def change(made: dict[str, Any]) -> object:
        return {**made, "settings": {**made["settings"], name: value}}

    return change


CHANGES = [
    *(with_setting("alpha", value) for value in ("x", 7, None, 1e400)),
    *(with_setting("pool", value) for value in (0, 0.5, 10**400)),
    *(with_setting(name, 10**30) for name in ("precision", "passages", "stop_words")),
    with_setting("unknown", 1),
    *(lambda made, value=value: {**made, "settings": value} for value in ([], None)),
    *(lambda made, value=value: {**made, "encoder": value} for value in (None, {"name": 3}, {"name": None})),
    lambda _: [],
    lambda _: "x",
]


def test_damaged_settings_are_an_error(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    location = f"{postgres}&collection=set"
    DatabaseIndex.build([Document("a", "A cat.")], HashEncoder(16), location=location)
    with psycopg.connect(postgres, autocommit=True) as connection:
        (text,) = connection.execute("SELECT settings FROM set_settings").fetchone()
        damaged = [json.dumps(change(json.loads(text))) for change in CHANGES]
        for settings in (*damaged, "", "{", "[" * 100_000):
            connection.execute("UPDATE set_settings SET settings = %s", [settings])
            with pytest.raises(IndexFormatError, match="collection=set: its settings cannot be read"):
                print(settings[:300], DatabaseIndex(location, HashEncoder(16)))
            with pytest.raises(IndexFormatError, match="settings"):
                load_index(location)
