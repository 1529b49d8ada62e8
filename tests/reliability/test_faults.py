"""A fault at any encoder call or file operation: the index in memory and the one on disk stay whole."""

import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.errors import IndexWriteError, InputError, PreciseRagError
from precise_rag.index import DenseIndex, DocumentIndex, HybridIndex, load_index
from precise_rag.index.rows import segments
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray, IntArray
from support.faults import failing, no_space, not_allowed
from support.saved_indexes import BUILD, DOCUMENTS, ENCODER, build, content, replace_encoder

NEW = [
    Document("new", "Herons wait in reeds. Quartz glitters. Zephyrs blow."),
    Document("lamp", "The lamp was replaced by fireflies."),
    Document("long", "Marmots whistle. " * 40),
]


class Fault(Exception):
    """What the tests raise."""


class Faulty(HashEncoder):
    """Raises at the n-th call of any of its methods, counted from 1; never if `at` is 0."""

    def __init__(self) -> None:
        super().__init__(8)
        self.at, self.n_calls = 0, 0

    def _count(self) -> None:
        self.n_calls += 1
        if self.n_calls == self.at:
            raise Fault

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        self._count()
        return super().encode(texts)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        return super().encode_queries(queries)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        self._count()
        return super().count_tokens(texts)


def state(index: DocumentIndex) -> tuple[Any, ...]:
    """Everything of an index that a change may touch."""
    words = [part.segment.words.words() for part in index._rows.parts]
    return (*content(index), index._rows.parts, words)


@pytest.mark.parametrize("loaded", [False, True], ids=["built", "loaded"])
@pytest.mark.parametrize("kind", BUILD)
def test_a_fault_in_the_encoder_changes_nothing(
    kind: str, loaded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precise_rag.sentences.tables._BATCH_CHARACTERS", 20)
    encoder = Faulty()
    index: Any = build(kind)
    if loaded:
        index.save(tmp_path)
        index = load_index(tmp_path, ENCODER)
    replace_encoder(index, encoder)
    at = 0
    while True:
        at += 1
        before = state(index)
        encoder.at, encoder.n_calls = at, 0
        try:
            index.add(NEW)
        except Fault:
            encoder.at = 0
            assert state(index) == before
            assert index.search("herons lamp quartz", 5)
        else:
            break
    assert at > 2
    expected = build(kind)
    replace_encoder(expected, HashEncoder(8))
    expected.add(NEW)
    assert content(index) == content(expected)


@pytest.mark.parametrize("kind", [HybridIndex])
def test_a_failed_add_leaves_the_vocabulary_of_a_loaded_index(
    kind: type[DocumentIndex], tmp_path: Path
) -> None:
    """The words of the failed documents were known and had no rows: each query for one raised ValueError."""
    kind.build(DOCUMENTS, ENCODER).save(tmp_path)
    index = kind.load(tmp_path, ENCODER)

    def documents() -> Iterator[Document]:
        yield Document("new", "Zephyrs blow.")
        yield Document("new", "The same id again.")

    with pytest.raises(InputError, match="'new'"):
        index.add(documents())
    original = index.scheme.read

    def fails_after(*args: Any) -> Any:
        yield from original(*args)
        raise Fault

    index.scheme.read = fails_after
    with pytest.raises(Fault):
        index.add([Document("new", "Zephyrs blow.")])
    del index.scheme.read
    assert len(index.search("zephyrs lamp", 5)) > 0
    index.save(tmp_path)
    again = kind.load(tmp_path, ENCODER)
    assert not any("zephyrs" in part.segment.words.words() for part in again._rows.parts)
    again.add([Document("new", "Zephyrs blow.")])
    assert again.search("zephyrs", 1)[0].doc_id == "new"


@pytest.mark.parametrize("vectors", ["short", "wide", "nan"])
@pytest.mark.parametrize("kind", ["dense", "hybrid", "sentence-context"])
def test_vectors_that_do_not_fit_are_refused(kind: str, vectors: str, tmp_path: Path) -> None:
    """At once, so that what is saved can be loaded."""

    class Odd(HashEncoder):
        def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
            rows = super().encode(texts)
            return {"short": rows[:-1], "wide": np.hstack([rows, rows]), "nan": rows * np.float32(np.nan)}[
                vectors
            ]

    index = build(kind)
    index.save(tmp_path)
    before = state(index)
    replace_encoder(index, Odd(8))
    try:
        with np.errstate(all="ignore"):
            index.add([Document("new", "Herons wait. Reeds bend.")])
    except PreciseRagError:
        assert state(index) == before
    else:
        pytest.fail("they were taken")
    index.save(tmp_path)
    assert content(load_index(tmp_path, ENCODER)) == before[:2]


def test_a_query_vector_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(8,\)"):
        build("dense").search("", vector=np.ones(9, dtype=np.float32))


@pytest.mark.parametrize("error", [no_space, not_allowed, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(("kind", "merging"), [("dense", True), ("hybrid", True), ("hybrid", False)])
def test_a_fault_at_any_file_operation_of_a_save(
    kind: str,
    merging: bool,
    error: Callable[[], BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The folder holds the old index or the new one, and the next save works and clears up."""
    if not merging:
        for limit, value in (("SMALL", 0), ("FACTOR", 0), ("MOST_DELETED", 1)):
            monkeypatch.setattr(segments, limit, value)
    old, new = build(kind), build(kind)
    for index in (old, new):
        index.add(NEW[:1])
    new.delete(["lamp"])
    states = {i.document_ids: content(i) for i in (old, new)}
    path = tmp_path / "index"
    at, failed = -16, 0
    while True:
        at += 17
        old.save(path)
        loaded = load_index(path, ENCODER)
        loaded.delete(["lamp"])
        try:
            with failing(at, error) as called:
                loaded.save(path)
            finished = len(called) < at
        except (IndexWriteError, KeyboardInterrupt, MemoryError):
            finished, failed = False, failed + 1
        found = load_index(path, ENCODER)
        assert content(found) == states[found.document_ids]
        if finished:
            break
        loaded.save(path)
        assert load_index(path, ENCODER).document_ids == new.document_ids
        assert len(list(path.glob("data-*"))) == (1 if merging else 2)
    assert found.document_ids == new.document_ids
    assert failed * 17 > (20 if merging else 5)


CHANGES: dict[str, Callable[[DocumentIndex], object]] = {
    "add": lambda index: index.add(NEW[:1]),
    "replace": lambda index: index.add(NEW[1:2]),
    "delete": lambda index: index.delete(["lamp"]),
    "search": lambda index: index.search("herons by the lamp", 3),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", BUILD)
def test_memory_that_runs_out_at_any_array_changes_nothing(kind: str, change: str, tmp_path: Path) -> None:
    """The change can then be made, and a saved and loaded index stays as good as the one in memory."""
    build(kind).save(tmp_path)
    expected = load_index(tmp_path, ENCODER)
    CHANGES[change](expected)
    wanted = content(expected)
    at, failed, finished = -8, 0, False
    while not finished:
        at += 9
        index = load_index(tmp_path, ENCODER)
        before = state(index)
        try:
            with failing(at, MemoryError, allocations=True) as called:
                CHANGES[change](index)
            finished = len(called) < at
        except MemoryError:
            failed += 1
            assert state(index) == before
            CHANGES[change](index)
        assert content(index) == wanted, f"at {at}"
    assert failed


@pytest.mark.parametrize("kind", BUILD)
def test_memory_that_runs_out_at_any_array_of_a_build_a_save_or_a_load(kind: str, tmp_path: Path) -> None:
    index = build(kind)
    index.save(tmp_path)
    expected = content(index)

    def save() -> None:
        loaded = load_index(tmp_path, ENCODER)
        with failing(at, MemoryError, allocations=True) as called:
            loaded.save(tmp_path)
        calls.append(len(called))

    def load() -> None:
        with failing(at, MemoryError, allocations=True) as called:
            load_index(tmp_path, ENCODER)
        calls.append(len(called))

    def make() -> None:
        with failing(at, MemoryError, allocations=True) as called:
            build(kind)
        calls.append(len(called))

    failed = 0
    for attempt in (save, load, make):
        calls: list[int] = []
        at = -8
        while not calls:
            at += 9
            with suppress(MemoryError, PreciseRagError):
                attempt()
            failed += not calls
            assert content(load_index(tmp_path, ENCODER)) == expected
    assert len(list(tmp_path.glob("data-*"))) == 1
    assert failed > 2


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_a_fault_at_any_file_operation_of_a_first_save(kind: str, tmp_path: Path) -> None:
    """What it leaves does not stand in the way of the next one."""
    index, path = build(kind), tmp_path / "index"
    at = -12
    while True:
        at += 13
        shutil.rmtree(path, ignore_errors=True)
        try:
            with failing(at, no_space) as called:
                index.save(path)
            if len(called) < at:
                break
        except IndexWriteError:
            index.save(path)
        assert content(load_index(path, ENCODER)) == content(index)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_ends_in_one_error(tmp_path: Path) -> None:
    index = build("dense")
    index.save(tmp_path / "index")
    (tmp_path / "index").chmod(0o500)
    with pytest.raises(IndexWriteError):
        index.save(tmp_path / "index")
    (tmp_path / "index").chmod(0o700)
    assert content(load_index(tmp_path / "index", ENCODER)) == content(index)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_places_where_no_folder_can_be_end_in_one_error(tmp_path: Path) -> None:
    index = build("dense")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "broken").symlink_to("nowhere")
    for place in (
        tmp_path / "file",
        tmp_path / "file" / "index",
        tmp_path / "broken",
        Path("/dev/full"),
        tmp_path / ("x" * 300),
    ):
        with pytest.raises((InputError, IndexWriteError)):
            index.save(place)
    assert (tmp_path / "file").read_text() == "mine"


def test_random_interruptions_also_at_the_clean_up(tmp_path: Path) -> None:
    """Two faults in one save."""
    choose, index = random.Random(1), build("hybrid")
    index.save(tmp_path)
    for _ in range(20):
        loaded = load_index(tmp_path, ENCODER)
        error = choose.choice([no_space, KeyboardInterrupt])
        with (
            suppress(IndexWriteError, KeyboardInterrupt),
            failing(choose.randrange(1, 120), error),
            failing(choose.randrange(1, 120), no_space),
        ):
            loaded.save(tmp_path)
        assert content(load_index(tmp_path, ENCODER)) == content(index)


def test_a_build_that_fails_leaves_the_index_that_was_there(tmp_path: Path) -> None:
    encoder = Faulty()
    DenseIndex.build(DOCUMENTS, HashEncoder(8)).save(tmp_path)
    encoder.at = 1
    with pytest.raises(Fault), DenseIndex.lock(tmp_path):
        DenseIndex.build(NEW, encoder).save(tmp_path)
    assert load_index(tmp_path, ENCODER).document_ids == tuple(d.id for d in DOCUMENTS)
