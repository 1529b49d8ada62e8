"""Servers without transactions: documents are whole whatever comes between two requests."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precise_rag.index import DatabaseIndex
from precise_rag.index.databases.qdrant import QdrantEngine, engine
from precise_rag.index.databases.qdrant.store import QdrantStore
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.databases import new_location

_SIZE = 6
_WRITES = ("put_rows", "put_heads", "drop_heads", "drop_rows")
_READS = ("heads", "best", "scores", "read", "between", "frequency", "count")


class Crash(Exception):
    """The process is gone."""


class Interrupted:
    """A store that calls a function before and after each request of some kinds; rows are written singly."""

    def __init__(self, store: QdrantStore, names: tuple[str, ...], between: Callable[[], None]) -> None:
        self._store, self._names, self._between = store, names, between

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in self._names:
            return method

        def call(*args: Any) -> Any:
            if name == "put_rows":
                for row in args[0]:
                    self._between()
                    method([row])
                return None
            self._between()
            found = method(*args)
            self._between()
            return found

        return call


@pytest.fixture
def index(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseIndex:
    index = DatabaseIndex(new_location("qdrant", request, tmp_path)(), HashEncoder())
    index.add([version(name, "old") for name in "ab"])
    return index


def version(name: str, word: str) -> Document:
    return Document(name, "".join(f"The {word} cat sleeps {i}. " for i in range(_SIZE)), {"word": word})


def interrupted(index: DatabaseIndex, names: tuple[str, ...], between: Callable[[], None]) -> DatabaseIndex:
    """The same collection, opened by another process, which can be interrupted."""
    assert isinstance(index.engine, QdrantEngine)
    other: Any = Interrupted(index.engine.store, names, between)
    return DatabaseIndex(QdrantEngine.over(other), index.encoder)


def check_whole(index: DatabaseIndex, ids: set[str]) -> None:
    """The documents are there, each with all of its sentences and all from one version."""
    found = index.search("cat sleeps", 100, returns="sentence")
    assert Counter(c.doc_id for c in found) == dict.fromkeys(ids, _SIZE)
    for name in ids:
        of_document = [c for c in found if c.doc_id == name]
        assert len({c.text.split()[1] for c in of_document} | {c.metadata["word"] for c in of_document}) == 1
    (stretch, *_) = index.neighbours([c for c in found if c.start == 0][:1], 100)
    assert len(stretch.sentences) == _SIZE


def check_nothing_is_left(index: DatabaseIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an hour, there are no rows but those of the documents."""
    monkeypatch.setattr(engine, "is_settled", lambda version: True)
    index.optimize()
    assert len(index) == 2 * _SIZE


def test_a_crash_leaves_documents_whole(index: DatabaseIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[Callable[[DatabaseIndex], None]] = [
        lambda index: index.add([version("a", f"new{time.monotonic_ns()}"), version("b", "new")]),
        lambda index: index.add([Document("a", version("a", "old").text, {"word": "old"})]),
        lambda index: index.delete(["a"]),
    ]
    for change in changes:
        for requests in range(30):
            index.add([version(name, "old") for name in "ab"])
            left = [requests]

            def crash(left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise Crash

            try:
                change(interrupted(index, _WRITES, crash))
            except Crash:
                check_whole(index, set(index.document_ids))
                assert set(index.document_ids) - {"a"} == {"b"}
            else:
                break
        assert requests > 1
    index.add([version(name, "old") for name in "ab"])
    check_nothing_is_left(index, monkeypatch)


def test_a_reader_sees_whole_documents_between_any_two_writes(index: DatabaseIndex) -> None:
    def read() -> None:
        check_whole(index, set(index.document_ids))

    writer = interrupted(index, _WRITES, read)
    writer.add([version("a", "new"), version("c", "new")])
    writer.add([Document("b", version("b", "old").text, {"word": "old", "year": 1})])
    writer.delete(["a"])
    check_whole(index, {"b", "c"})
    assert len(index) == 2 * _SIZE


def test_a_reader_sees_whole_documents_whatever_is_written_meanwhile(index: DatabaseIndex) -> None:
    for at in range(12):
        count = [0]

        def write(at: int = at, count: list[int] = count) -> None:
            count[0] += 1
            if count[0] == at:
                index.add([version("a", f"new{time.monotonic_ns()}")])

        check_whole(interrupted(index, _READS, write), {"a", "b"})


def test_of_two_writers_one_wins_with_all_of_its_rows(
    index: DatabaseIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(12):
        count = [0]

        def write(at: int = at, count: list[int] = count) -> None:
            count[0] += 1
            if count[0] == at:
                index.add([version("a", f"first{at}-")])

        interrupted(index, _WRITES, write).add([version("a", f"second{at}-")])
        check_whole(index, {"a", "b"})
    check_nothing_is_left(index, monkeypatch)
