"""A forked child goes on with what its parent had, or says why not."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import precise_rag
from precise_rag import (
    Document,
)
from precise_rag._processes import PerProcess, native_work
from precise_rag._progress import progress_bar
from precise_rag.index import (
    HybridIndex,
    load_index,
)
from precise_rag.testing import HashEncoder
from support.carried_over import DOCUMENTS, INDEXES, found
from support.children import has_fork, in_child
from support.figures import count


@pytest.fixture
def held():
    """Runs a function that blocks in another thread until the test is over; waits until it is inside."""
    release, threads = threading.Event(), []

    def hold(context):
        inside = threading.Event()

        def run():
            with context:
                inside.set()
                release.wait(60)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        assert inside.wait(10)

    yield hold
    release.set()
    for thread in threads:
        thread.join(10)


@has_fork
@pytest.mark.parametrize("kind", INDEXES)
def test_locks_of_an_index_are_free_in_a_child(kind, held):
    index = kind.build(DOCUMENTS, HashEncoder())
    expected = found(index)
    held(index._rows.writing)
    held(index._rows.preparing)

    def work():
        before = found(index)
        index.add([Document("new", "A wholly unseen wordling.")])
        return before, index.search("wordling", 1)[0].doc_id

    assert in_child(work) == (expected, "new")


@has_fork
def test_a_child_goes_on_after_a_fork_in_the_middle_of_an_add(tmp_path):
    encoding, go_on = threading.Event(), threading.Event()

    class Slow(HashEncoder):
        def encode(self, texts, **options):
            if any("slow" in text for text in texts):
                encoding.set()
                go_on.wait(60)
            return super().encode(texts, **options)

    index = HybridIndex.build(DOCUMENTS, Slow())
    expected = found(index)
    slow = [Document("quick", "Quick wordlings come first. " * 9_000), Document("slow", "A slow wordling.")]
    thread = threading.Thread(target=index.add, args=(slow,))
    thread.start()
    assert encoding.wait(60)

    def work():
        before = found(index)
        index.add([Document("new", "An unseen beacon.")])
        index.save(tmp_path / "index")
        loaded = load_index(tmp_path / "index", HashEncoder())
        return before, index.search("beacon", 1)[0].doc_id, loaded.search("beacon", 1)[0].doc_id

    try:
        assert in_child(work) == (expected, "new", "new")
    finally:
        go_on.set()
        thread.join(60)
    assert "slow" in index.document_ids


@has_fork
def test_a_connection_is_not_shared_with_a_child(held):
    connection = PerProcess()
    mine = connection.get(object)
    held(connection._lock)
    assert in_child(lambda: (connection._value is None, connection.get(lambda: "new"))) == (True, "new")
    assert connection._value is mine


@has_fork
def test_a_fork_waits_for_native_work(held, monkeypatch):
    done = []

    class Work:
        def __enter__(self):
            self.context = native_work()
            self.context.__enter__()

        def __exit__(self, *error):
            done.append(True)
            self.context.__exit__(None, None, None)

    started = threading.Event()

    def run():
        with Work():
            started.set()
            time.sleep(0.2)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(10)

    def work():
        with native_work():
            return list(done)

    assert in_child(work) == [True]
    thread.join()
    monkeypatch.setattr("precise_rag._processes.FORK_WAIT", 0.05)
    held(native_work())
    assert "WorkerError" in in_child(work)
    assert "spawn" in in_child(work)
    with native_work():
        pass


@has_fork
def test_bars_take_no_lock_of_another_thread_or_process(held):
    from tqdm import tqdm

    held(tqdm.get_lock())
    list(progress_bar(range(3), shown=False))

    def work():
        index = HybridIndex.build(DOCUMENTS, HashEncoder(), show_progress=True)
        return len(found(index))

    assert in_child(work) == 4


_FORKS = """
    import os, signal, sys, threading, time
    from precise_rag import Document, PreciseRAG, load_encoder

    texts = [f"Keeper {i} lit the lamp in {1800 + i}. The sea was calm." for i in range(50)]
    documents = [Document(f"d{i}", text) for i, text in enumerate(texts)]
    rag = PreciseRAG.from_documents(documents, encoder=load_encoder(device="cpu"))
    ask = lambda: [c.id for c in rag.retrieve("Who lit the lamp in 1803?").kept]
    expected, stop = ask(), False

    def query():
        while not stop:
            ask()

    threads = [threading.Thread(target=query) for _ in range(3)]
    [thread.start() for thread in threads]
    hung = wrong = 0
    for _ in range(int(sys.argv[1])):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if ask() == expected else 1)
        end = time.monotonic() + 60
        while (status := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
            time.sleep(0.01)
        if status == (0, 0):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            hung += 1
        elif status[1]:
            wrong += 1
    stop = True
    [thread.join() for thread in threads]
    print(hung, wrong)
"""


@has_fork
@pytest.mark.parametrize(
    "n_forks",
    [pytest.param(3, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.torture)],
)
def test_children_that_are_forked_while_threads_query_answer_too(n_forks):
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_FORKS), str(n_forks)],
        capture_output=True,
        text=True,
        timeout=290 if n_forks < 10 else 3600,
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
    )
    assert run.stdout.split() == ["0", "0"], run.stderr
    count("forks while threads query, none hung", n_forks)


_LARGE = """
    import os, signal, threading, time
    import numpy as np
    from precise_rag.index.arrays.vectors import dot

    rows = np.random.default_rng(0).standard_normal((100_000, 384)).astype(np.float32)
    expected, stop = dot({"vectors": rows}, rows[0])[:9], False

    def search():
        while not stop:
            dot({"vectors": rows}, rows[0])

    threads = [threading.Thread(target=search) for _ in range(3)]
    [thread.start() for thread in threads]
    time.sleep(0.1)
    children = []
    for _ in range(5):
        children.append(os.fork())
        if not children[-1]:
            os._exit(0 if np.allclose(dot({"vectors": rows}, rows[0])[:9], expected, atol=1e-3) else 1)
    end, left = time.monotonic() + 20, set(children)
    while left and time.monotonic() < end:
        left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
        time.sleep(0.01)
    stop = True
    [os.kill(pid, signal.SIGKILL) for pid in left]
    [thread.join() for thread in threads]
    print(len(left))
"""


@has_fork
@pytest.mark.slow
def test_children_multiply_matrices_after_a_fork_in_the_middle_of_it():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_LARGE)],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    assert run.stdout.split() == ["0"], run.stderr


_ITERATORS = """
    import os, signal, sys, time
    from precise_rag import Segmenter
    from precise_rag.errors import WorkerError
    from precise_rag.testing import HashEncoder
    from precise_rag.segmentation import GreedySegmenter

    texts = ["One is here. Two is there. " * 2_000] * 9

    def many(kind):
        if kind == "greedy":
            return GreedySegmenter(HashEncoder(8)).segment_many(iter(texts))
        return Segmenter.from_pretrained("small").segment_many(texts)

    if __name__ == "__main__":
        results = many(sys.argv[1])
        next(results)
        pid = os.fork()
        if not pid:
            try:
                print(len(list(results)), flush=True)
            except WorkerError as error:
                print("before a fork" in str(error), flush=True)
            os._exit(0)
        end = time.monotonic() + 60
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < end:
            time.sleep(0.01)
        print(len(list(results)), time.monotonic() < end)
"""


@has_fork
@pytest.mark.parametrize(("kind", "in_child"), [("greedy", "True"), ("small", "8")])
def test_an_iterator_that_was_carried_over_a_fork_goes_on_or_says_why_not(kind, in_child, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(_ITERATORS))
    run = subprocess.run([sys.executable, script, kind], capture_output=True, text=True, timeout=250)
    assert run.stdout.split() == [in_child, "8", "True"], run.stderr


def test_a_bar_that_is_not_shown_takes_no_lock(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with progress_bar(shown=False, total=3) as bar:
        bar.update()
        bar.set_postfix(loss=1)
        bar.write("line")
    assert list(progress_bar([], shown=False)) == []
    for path in Path(precise_rag.__file__).parent.rglob("*.py"):
        assert path.name == "_progress.py" or "import tqdm" not in path.read_text("utf-8"), path
