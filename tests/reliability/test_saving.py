"""Saved indexes under faults and several writers: the folder keeps a whole index, and nothing is lost."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.errors import (
    IndexChangedError,
    IndexLockedError,
    IndexWriteError,
    InputError,
    PreciseRagError,
)
from precise_rag.index import DenseIndex, DocumentIndex, HybridIndex, load, load_index, table
from precise_rag.index.folder import LOCK_FILE, locked
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray, IntArray
from support.children import has_fork, in_child
from support.faults import failing, no_space, not_allowed
from support.saved_indexes import BUILD, ENCODER, LOOP, build, content, nested, tree

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

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        self._count()
        return super().count_tokens(texts)


@pytest.mark.parametrize("loaded", [False, True], ids=["built", "loaded"])
@pytest.mark.parametrize("kind", BUILD)
def test_a_fault_in_the_encoder_changes_nothing(
    kind: str, loaded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precise_rag.sentences.sentence_tables._BATCH_CHARACTERS", 20)
    encoder, index, at = Faulty(), build(kind), 0
    if loaded:
        index.save(tmp_path)
        index = type(index).load(tmp_path, ENCODER)
    index.encoder = encoder
    before = content(index)
    while True:
        at += 1
        encoder.at, encoder.n_calls = at, 0
        try:
            index.add(NEW)
            break
        except Fault:
            encoder.at = 0
            assert content(index) == before
    assert at > 2
    expected = build(kind)
    expected.add(NEW)
    assert content(index) == content(expected)


def kill() -> BaseException:
    """Ends this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def saves(index: DocumentIndex, path: Path, at: int, error: Callable[[], BaseException]) -> bool:
    """Save with a fault at the n-th file operation, or in a child killed there; return whether it ended."""
    if error is kill:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with failing(at, kill):
                    index.save(path)
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL)
        return status == 0
    try:
        with failing(at, error) as called:
            index.save(path)
        return len(called) < at
    except (IndexWriteError, KeyboardInterrupt, MemoryError):
        return False


@pytest.mark.parametrize(
    "error", [no_space, not_allowed, KeyboardInterrupt, MemoryError, pytest.param(kill, marks=has_fork)]
)
@pytest.mark.parametrize(
    ("kind", "merging", "first"),
    [("dense", True, False), ("hybrid", True, False), ("hybrid", False, False), ("hybrid", True, True)],
)
def test_a_fault_at_any_file_operation_of_a_save(
    kind: str,
    merging: bool,
    first: bool,
    error: Callable[[], BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The folder holds the old index or the new one, and the next save works and clears up."""
    if not merging:
        for limit, value in (("SMALL", 0), ("FACTOR", 0), ("MOST_DELETED", 1)):
            monkeypatch.setattr(table, limit, value)
    old, new = build(kind), build(kind)
    for index in (old, new):
        index.add(NEW[:1])
    new.delete(["lamp"])
    states = {i.document_ids: content(i) for i in (old, new)}
    path, at, finished = tmp_path / "index", 0, False
    while not finished:
        at += 1
        shutil.rmtree(path, ignore_errors=True)
        written: Any = new
        if not first:
            old.save(path)
            written = load_index(path, ENCODER)
            written.delete(["lamp"])
        finished = saves(written, path, at, error)
        if not first or finished:
            found = load_index(path, ENCODER)
            assert content(found) == states[found.document_ids]
        if error is kill:  # the child is another writer, of which this process knows nothing
            written = new
        written.save(path)
        assert load_index(path, ENCODER).document_ids == new.document_ids
        assert len(list(path.glob("data-*"))) == (1 if merging else 2)
    assert at > 6


CHANGES: dict[str, Callable[[DocumentIndex, Path], object]] = {
    "add": lambda index, _: index.add(NEW[:1]),
    "replace": lambda index, _: index.add(NEW[1:2]),
    "delete": lambda index, _: index.delete(["lamp"]),
    "search": lambda index, _: index.search("herons by the lamp", 3),
    "save": lambda index, path: index.save(path),
    "load": lambda index, path: load_index(path, ENCODER),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", BUILD)
def test_memory_that_runs_out_at_any_array_changes_nothing(kind: str, change: str, tmp_path: Path) -> None:
    """The change can then be made, and what is saved stays as it was."""
    make = CHANGES[change]
    build(kind).save(tmp_path)
    expected = load_index(tmp_path, ENCODER)
    before = content(expected)
    make(expected, tmp_path)
    wanted, at, failed, finished = content(expected), -8, 0, False
    while not finished:
        at += 9
        index = load_index(tmp_path, ENCODER)
        try:
            with failing(at, MemoryError, allocations=True) as called:
                make(index, tmp_path)
            finished = len(called) < at
        except (MemoryError, PreciseRagError):
            failed += 1
            assert content(index) == before
            make(index, tmp_path)
        assert content(index) == wanted, f"at {at}"
        assert content(load_index(tmp_path, ENCODER)) == before
    assert failed
    assert len(list(tmp_path.glob("data-*"))) == 1


@pytest.mark.parametrize("place", ["file", "file/index", "broken", "x" * 300, "/dev/full"])
def test_places_where_no_folder_can_be_end_in_one_error(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "broken").symlink_to("nowhere")
    with pytest.raises((InputError, IndexWriteError)):
        build("dense").save(tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"


HOLD = """
with DenseIndex.lock(path):
    print("held", flush=True)
    time.sleep(600)
"""
ADD = """
for n in range(4):
    saved = False
    while not saved:
        with DenseIndex.lock(path, timeout=60) if name < "c" else nullcontext():
            index = load_index(path, HashEncoder(8))
            index.add([Document(f"{name}-{n}", f"Writer {name} was here, time {n}.")])
            try:
                index.save(path)
                saved = True
            except IndexChangedError:
                assert name >= "c"
"""
ALTERNATE = """
texts = [Document(f"d{i}", f"Text {i} of the writer.") for i in range(5)]
encoders = HashEncoder(8), HashEncoder(16)
built = [kind.build(texts, encoder) for kind in (DenseIndex, HybridIndex) for encoder in encoders]
print("built", flush=True)
while True:
    for index in built:
        with DenseIndex.lock(path, timeout=60):
            index.save(path)
"""


def start(script: str, path: Path, name: str = "") -> "subprocess.Popen[str]":
    imports = """
        import sys, time
        from contextlib import nullcontext
        from precise_rag.errors import IndexChangedError
        from precise_rag.index import DenseIndex, HybridIndex, load_index
        from precise_rag.testing import HashEncoder
        from precise_rag.types import Document
        path, name = sys.argv[1:]
    """
    command = [sys.executable, "-c", textwrap.dedent(imports) + script, str(path), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def running(tmp_path: Path) -> "Iterator[Callable[[str], subprocess.Popen[str]]]":
    """Starts a script on the index "dense" in `tmp_path`, which has begun when it has printed a line."""
    processes = []
    build("dense").save(tmp_path)

    def begin(script: str) -> "subprocess.Popen[str]":
        process = start(script, tmp_path)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline()
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("names", ["ab", "cd"], ids=["lock", "no lock"])
def test_what_two_writers_add_all_arrives(names: str, tmp_path: Path) -> None:
    DenseIndex.build([], ENCODER, chunks="sentences").save(tmp_path)
    processes = [start(ADD, tmp_path, name) for name in names]
    outputs = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    expected = {f"{name}-{n}" for name in names for n in range(4)}
    assert set(load_index(tmp_path, ENCODER).document_ids) == expected
    assert len(list(tmp_path.glob("data-*"))) == 1


def test_an_index_is_read_while_other_processes_save_other_kinds_in_its_place(
    running: "Callable[[str], subprocess.Popen[str]]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoder that is found by its name changes with the kind, too."""
    monkeypatch.setattr(load, "_encoder", lambda *of: HashEncoder(int(of[2]["name"].split("-")[1])))
    writers = [running(ALTERNATE) for _ in range(2)]
    kinds, n_read = set(), 0
    while n_read < 60 or len(kinds) < 2:  # a busy machine may run the writers late
        assert all(writer.poll() is None for writer in writers)
        index = load_index(tmp_path)
        assert index.search("the writer, the lamp")
        kinds.add((type(index), index.encoder.dimension))
        n_read += 1


def test_a_save_waits_for_a_while(
    running: "Callable[[str], subprocess.Popen[str]]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, index = running(HOLD), load_index(tmp_path, ENCODER)  # readers do not wait
    index.delete(["lamp"])
    monkeypatch.setattr("precise_rag.index.index.locked", partial(locked, timeout=0.2))
    with pytest.raises(IndexLockedError, match="wait until it has finished"):
        index.save(tmp_path)
    assert "lamp" in load_index(tmp_path, ENCODER).document_ids
    holder.send_signal(signal.SIGKILL)  # a killed holder holds nothing
    holder.wait()
    index.save(tmp_path)
    assert "lamp" not in load_index(tmp_path, ENCODER).document_ids


def test_threads_wait_for_each_other_and_one_thread_may_hold_it_twice(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with DenseIndex.lock(tmp_path), DenseIndex.lock(tmp_path):
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(30)
    with pytest.raises(IndexLockedError), DenseIndex.lock(tmp_path, 0.1):
        pass
    leave.set()
    thread.join()
    with DenseIndex.lock(tmp_path, 0):
        build("dense").save(tmp_path)


@has_fork
def test_a_forked_child_does_not_hold_its_parent_s_lock(tmp_path: Path) -> None:
    def lock() -> str:
        with DenseIndex.lock(tmp_path, 0.1):
            return "held"

    with DenseIndex.lock(tmp_path):
        for _ in range(2):  # the end of the first one does not free it
            assert "IndexLockedError" in in_child(lock)


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
    yours.save(tmp_path / "other")
    build("hybrid").save(tmp_path / "index")  # one that was built says what the folder should hold


OURS = f"data-{'0' * 32}.safetensors"
FOREIGN = {
    "a file named data-*": {"data-raw.safetensors": "mine"},
    "a folder named like a data file": {f"{OURS}/thesis.csv": "mine"},
    "another manifest": {"manifest.json": '{"name": "my web app"}'},
    "a manifest that is not JSON": {"manifest.json": "name = my web app"},
    "notes": {"notes.txt": "mine"},
    "hidden": {".git/config": "mine"},
    "a folder named as the lock": {"precise-rag.lock/mine": "mine"},
}


@pytest.mark.parametrize("with_index", [False, True], ids=["alone", "beside an index"])
@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_with_other_files_is_not_touched(name: str, with_index: bool, tmp_path: Path) -> None:
    path = tmp_path / "p"
    if with_index:
        if name in ("a manifest that is not JSON", "a folder named as the lock"):
            pytest.skip("the index has these itself")
        build("dense").save(path)
    for file, text in FOREIGN[name].items():
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_text(text)
    before, stays = tree(path), with_index and name in ("a file named data-*", "notes", "hidden")
    refusal = r"holds other files.*give an empty or new folder"
    for attempt in (build("dense").save, lambda p: HybridIndex.lock(p).__enter__()):
        with nullcontext() if stays else pytest.raises(InputError, match=refusal):
            attempt(path)
        assert stays or tree(path) == before
    assert all((path / file).read_text() == text for file, text in FOREIGN[name].items())


def test_an_index_with_a_backup_of_hard_links_is_saved_and_the_backup_stays(tmp_path: Path) -> None:
    index = build("dense")
    index.save(tmp_path / "index")
    shutil.copytree(tmp_path / "index", tmp_path / "backup", copy_function=os.link)
    before = tree(tmp_path / "backup")
    index.add([Document("new", "My text.")])
    index.save(tmp_path / "index")
    assert "new" in load_index(tmp_path / "index", ENCODER).document_ids
    assert tree(tmp_path / "backup") == before


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("name", [OURS, "manifest.json", "manifest.json.part", LOCK_FILE])
def test_links_in_a_folder_are_not_followed(name: str, link: Callable[..., None], tmp_path: Path) -> None:
    mine, index = tmp_path / "mine", tmp_path / "index"
    mine.write_text('{"format": "precise-rag-index"}')
    mine.chmod(0o600)
    index.mkdir()
    link(mine, index / name)
    refused = pytest.raises(InputError, match="holds other files")
    with refused if link is os.symlink or name == LOCK_FILE else nullcontext():
        build("dense").save(index)
    assert mine.read_text() == '{"format": "precise-rag-index"}'
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600


def test_a_lock_whose_index_is_not_saved_leaves_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), HybridIndex.lock(tmp_path / "new"), HybridIndex.lock(tmp_path / "new"):
            raise KeyError
        assert tree(tmp_path) == {}
    with HybridIndex.lock(tmp_path / "new"):
        build("hybrid").save(tmp_path / "new")
    assert len(load_index(tmp_path / "new", ENCODER)) > 0


def test_what_interrupted_saves_left_is_cleared_and_a_damaged_index_replaced(tmp_path: Path) -> None:
    index = build("dense")
    for left in (OURS, "manifest.json.part"):
        (tmp_path / left).write_bytes(b"half")
    for _ in range(2):
        index.save(tmp_path)
        assert content(load_index(tmp_path, ENCODER)) == content(index)
        assert len(list(tmp_path.glob("data-*"))) == 1
        (tmp_path / "manifest.json").write_text("{")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
any_text = st.text(st.characters(), max_size=30)
surrogates = st.sampled_from(
    ["a \ud83d\ude00 b", "\ud83d", "\ude00\ud83d", "line\u2028separator\x85\r\n", "e\u0301"]
)
"""A pair of surrogates became one character on saving, and all offsets after them were wrong."""


@settings(max_examples=60)
@given(
    st.dictionaries(any_text.filter(bool) | surrogates, st.tuples(any_text | surrogates, values), max_size=4)
)
def test_what_is_saved_is_what_is_loaded(tmp_path_factory: Any, texts: dict[str, tuple[str, Any]]) -> None:
    path = tmp_path_factory.mktemp("index")
    documents = [
        Document(i, f"First. {text} The lamp is lit.", {text: value}) for i, (text, value) in texts.items()
    ]
    index = HybridIndex.build(documents, ENCODER)
    index.save(path)
    loaded = load_index(path, ENCODER)
    assert [loaded.document(identifier) for identifier in loaded.document_ids] == documents
    for before, after in zip(
        *(i.search("lamp lit", 9) if texts else [] for i in (index, loaded)), strict=True
    ):
        assert (after.id, after.text, after.metadata) == (before.id, before.text, before.metadata)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({1: "a"}, "the key 1 is not a string"),
        ({"a": [{None: 1}]}, "the key None is not a string"),
        ({"a": (1, 2)}, "the tuple of 'a' is not a JSON type; give a list"),
        ({"a": {1, 2}}, "the set of 'a' is not a JSON type; give a list"),
        ({"a": [{"b": np.float32(1)}]}, "the float32 of 'b' is not a JSON type; give a string or a number"),
        ({"a": 10**5000}, "metadata cannot be saved"),
        ({"a": nested(100_000)}, "metadata cannot be saved"),
        ({"a": LOOP}, "metadata cannot be saved"),
    ],
)
def test_metadata_that_json_would_change_are_refused(metadata: Any, message: str, tmp_path: Path) -> None:
    index = build("dense")
    index.save(tmp_path)
    index.add([Document("odd", "A text.", metadata)])
    with pytest.raises(InputError, match=f"document 'odd': (metadata cannot be saved as JSON.*)?{message}"):
        index.save(tmp_path)
    assert content(load_index(tmp_path, ENCODER)) == content(build("dense"))
    assert len(list(tmp_path.glob("data-*"))) == 1
