"""Several processes and threads that write one index: nothing torn, nothing lost."""

import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from precise_rag.errors import IndexChangedError, IndexLockedError, IndexWriteError
from precise_rag.index import DenseIndex, HybridIndex, load, load_index
from precise_rag.index.storage.folder import locked
from precise_rag.index.storage.lock import HOLDER_FILE, LOCK_FILE, hold_folder
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.saved_indexes import ENCODER, build

HOLD = """
import sys, time
from precise_rag.index import DenseIndex
with DenseIndex.lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""

ADD_ONE = """
import sys
from pathlib import Path
from precise_rag.index import DenseIndex, load_index
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

path, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
for n in range(times):
    with DenseIndex.lock(path, timeout=60):
        index = load_index(path, HashEncoder(8))
        index.add([Document(f"{name}-{n}", f"Writer {name} was here, time {n}.")])
        index.save(path)
"""

SAVE_OVER = """
import sys
from precise_rag.index import HybridIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

path, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
index = HybridIndex.build([Document(f"{name}{i}", f"Text {i} of {name}.") for i in range(5)], HashEncoder(8))
for _ in range(times):
    with HybridIndex.lock(path, timeout=100):
        index.save(path)
"""

ALTERNATE = """
import sys
from precise_rag.index import DenseIndex, HybridIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

texts = [Document(f"d{i}", f"Text {i} of the writer.") for i in range(5)]
encoders = HashEncoder(8), HashEncoder(16)
built = [kind.build(texts, encoder) for kind in (DenseIndex, HybridIndex) for encoder in encoders]
print("built", flush=True)
while True:
    for index in built:
        index.save(sys.argv[1])
"""

UPDATE_WITHOUT_LOCK = """
import sys
from precise_rag.errors import IndexChangedError
from precise_rag.index import load_index
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

path, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
for n in range(times):
    while True:
        index = load_index(path, HashEncoder(8))
        index.add([Document(f"{name}-{n}", f"Writer {name} was here, time {n}.")])
        try:
            index.save(path)
            break
        except IndexChangedError:
            print("again", flush=True)
"""


def start(script: str, *args: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def holder(tmp_path: Path) -> "Iterator[subprocess.Popen[str]]":
    """A process that holds the lock of `tmp_path / "index"`."""
    build("dense").save(tmp_path / "index")
    process = start(HOLD, tmp_path / "index")
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def writers(script: str, path: Path, names: str, times: int) -> list[str]:
    """Run one process per name at once. Returns what each printed; all must succeed."""
    processes = [start(script, path, name, times) for name in names]
    outputs = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return [out for out, _ in outputs]


def test_changes_under_the_lock_all_arrive(tmp_path: Path) -> None:
    DenseIndex.build([], ENCODER, chunks="sentences").save(tmp_path)
    writers(ADD_ONE, tmp_path, "abc", 3)
    expected = {f"{name}-{n}" for name in "abc" for n in range(3)}
    assert set(load_index(tmp_path, ENCODER).document_ids) == expected
    assert len(list(tmp_path.glob("data-*"))) == 1


def test_changes_without_the_lock_are_noticed_and_none_is_lost(tmp_path: Path) -> None:
    DenseIndex.build([], ENCODER, chunks="sentences").save(tmp_path)
    writers(UPDATE_WITHOUT_LOCK, tmp_path, "ab", 4)
    expected = {f"{name}-{n}" for name in "ab" for n in range(4)}
    assert set(load_index(tmp_path, ENCODER).document_ids) == expected


def test_writers_that_replace_each_other_leave_one_whole_index(tmp_path: Path) -> None:
    writers(SAVE_OVER, tmp_path / "index", "xy", 5)
    loaded = load_index(tmp_path / "index", HashEncoder(8))
    assert {identifier[0] for identifier in loaded.document_ids} in ({"x"}, {"y"})
    assert len(loaded.document_ids) == 5
    assert loaded.search("text")
    assert len(list((tmp_path / "index").glob("data-*"))) == 1


def test_an_index_is_read_while_another_process_saves_other_kinds_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoder that is found by its name changes with the kind, too."""
    build("dense").save(tmp_path / "index")
    monkeypatch.setattr(load, "load_packaged_encoder", lambda name, _: HashEncoder(int(name.split("-")[1])))
    process = start(ALTERNATE, tmp_path / "index")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "built\n"
        found = [load_index(tmp_path / "index") for _ in range(60)]
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    assert all(index.search("the writer, the lamp") for index in found)
    assert len({(type(index), index.encoder and index.encoder.dimension) for index in found}) > 1


def test_the_error_names_the_process_that_holds_the_lock(
    holder: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    path = tmp_path / "index"
    with (
        pytest.raises(IndexLockedError, match=rf"process {holder.pid} on host .*wait until"),
        DenseIndex.lock(path, 0.1),
    ):
        pass
    loaded = load_index(path, ENCODER)  # readers do not wait
    assert loaded.search("lamp")


def test_save_waits_for_a_while(
    holder: "subprocess.Popen[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = load_index(tmp_path / "index", ENCODER)
    index.delete(["lamp"])
    monkeypatch.setattr("precise_rag.index.document_index.locked", partial(locked, timeout=0.2))
    with pytest.raises(IndexLockedError):
        index.save(tmp_path / "index")
    assert "lamp" in load_index(tmp_path / "index", ENCODER).document_ids
    holder.send_signal(signal.SIGTERM)
    holder.wait()
    index.save(tmp_path / "index")
    assert "lamp" not in load_index(tmp_path / "index", ENCODER).document_ids


def test_a_killed_holder_holds_nothing(holder: "subprocess.Popen[str]", tmp_path: Path) -> None:
    holder.kill()
    holder.wait()
    assert (tmp_path / "index" / HOLDER_FILE).exists()
    index = load_index(tmp_path / "index", ENCODER)
    with DenseIndex.lock(tmp_path / "index", 0):  # waits for nobody
        index.save(tmp_path / "index")
    assert not (tmp_path / "index" / HOLDER_FILE).exists()


def test_threads_wait_for_each_other_and_one_thread_may_hold_it_twice(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with DenseIndex.lock(tmp_path), DenseIndex.lock(tmp_path):
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(30)
    with (
        pytest.raises(IndexLockedError, match="another thread of this process"),
        DenseIndex.lock(tmp_path, 0.1),
    ):
        pass
    leave.set()
    thread.join()
    with DenseIndex.lock(tmp_path, 0):
        build("dense").save(tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_hold_its_parent_s_lock(tmp_path: Path) -> None:
    def try_to_lock(found: "multiprocessing.connection.Connection") -> None:
        try:
            with DenseIndex.lock(tmp_path, 0.1):
                found.send("held")
        except IndexLockedError:
            found.send("locked")

    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe()
    with DenseIndex.lock(tmp_path):
        child = context.Process(target=try_to_lock, args=(send,))
        child.start()
        assert receive.poll(30)
        assert receive.recv() == "locked"
        child.join()
        grandchild = start(HOLD, tmp_path)
        time.sleep(0.5)
        assert grandchild.poll() is None
        grandchild.kill()
        out, _ = grandchild.communicate()
        assert out == "", "the child's end released the parent's lock"


def test_a_lost_update_is_noticed(tmp_path: Path) -> None:
    build("hybrid").save(tmp_path / "index")
    mine, yours = (load_index(tmp_path / "index", ENCODER) for _ in range(2))
    mine.add([Document("mine", "My text.")])
    yours.add([Document("yours", "Your text.")])
    mine.save(tmp_path / "index")
    mine.save(tmp_path / "index")
    with pytest.raises(IndexChangedError, match="load it again, repeat the change"):
        yours.save(tmp_path / "index")
    assert "mine" in load_index(tmp_path / "index", ENCODER).document_ids
    assert len(list((tmp_path / "index").glob("data-*"))) == 1
    yours.save(tmp_path / "other")
    fresh = build("hybrid")
    fresh.save(tmp_path / "index")  # one that was built says what the folder should hold


def test_a_holder_file_that_is_odd_is_no_obstacle(tmp_path: Path) -> None:
    build("dense").save(tmp_path)
    for text in ("", "{", "[]", json.dumps({"pid": "x", "host": None}), "[" * 10_000):
        (tmp_path / HOLDER_FILE).write_text(text)
        with DenseIndex.lock(tmp_path):
            pass
    (tmp_path / "victim").write_text("mine")
    (tmp_path / LOCK_FILE).unlink()
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "victim")
    with pytest.raises((IndexWriteError, ValueError)), HybridIndex.lock(tmp_path):
        pass
    assert (tmp_path / "victim").read_text() == "mine"


TIGHT = """
import sys
from pathlib import Path
from precise_rag.index.storage.lock import hold_folder
turns = Path(sys.argv[1]) / "turns"
while True:
    with hold_folder(Path(sys.argv[1]), 60):
        turns.write_text(str(int(turns.read_text()) + 1))
"""


@pytest.fixture(params=["process", "thread"])
def tight_writer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder whose lock another writer takes again as soon as it has released it."""
    turns = tmp_path / "turns"
    turns.write_text("0")
    if request.param == "process":
        writer = subprocess.Popen([sys.executable, "-c", TIGHT, str(tmp_path)])
        yield tmp_path
        writer.kill()
        writer.wait()
        return
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with hold_folder(tmp_path, 60):
                turns.write_text(str(int(turns.read_text()) + 1))

    thread = threading.Thread(target=write)
    thread.start()
    yield tmp_path
    stop.set()
    thread.join()


def test_a_writer_gets_its_turn_beside_one_that_never_rests(tight_writer: Path) -> None:
    turns = tight_writer / "turns"
    while int(turns.read_text() or 0) == 0:
        time.sleep(0.01)
    seen = []
    for _ in range(5):
        with hold_folder(tight_writer, 60):
            seen.append(int(turns.read_text()))
    assert len(seen) == 5
    assert max(later - sooner for sooner, later in itertools.pairwise(seen)) < 1_000
