"""Forks, killed workers, and objects that are sent to workers."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import precise_rag
from precise_rag import (
    Document,
    GradientSelector,
    PreciseRAG,
    RelevanceFilter,
    Segmenter,
    load_reranker,
)
from precise_rag._pickling import Portable
from precise_rag._processes import PerProcess, ProcessLock, native_work
from precise_rag._progress import progress_bar
from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.encoders import CachedEncoder
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import InputError, LLMAuthenticationError, WorkerError
from precise_rag.index import (
    BM25Index,
    DenseIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    load_index,
)
from precise_rag.llm.openai import OpenAIChat
from precise_rag.rerank.cohere import CohereReranker
from precise_rag.segmentation import GreedySegmenter
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import Ledger
from precise_rag.types import Message
from support.children import has_fork, in_child
from support.figures import count

DOCUMENTS = [Document(f"d{i}", f"Keeper {i} lit the lamp. The sea was calm in {1800 + i}.") for i in range(8)]
KEY = "sk-not-a-key-of-anyone-1234567890"
INDEXES = [HybridIndex, SentenceContextIndex, WordSentenceIndex, BM25Index, DenseIndex]


def found(index):
    return [(c.id, round(c.score, 5)) for c in index.search("who lit the lamp in 1803", 4)]


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


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_is_copied_with_its_rows(kind, copied, tmp_path):
    index = kind.build(DOCUMENTS, HashEncoder())
    expected = found(index)
    index.save(tmp_path / "index")
    for original in (index, kind.load(tmp_path / "index", HashEncoder())):
        twin = copied(original)
        assert found(twin) == expected
        twin.add([Document("new", "A wholly unseen wordling.")])
        assert twin.search("wordling unseen", 1)[0].doc_id == "new"
        assert found(original) == expected
        assert "new" not in original.document_ids


def test_an_index_is_copied_while_another_thread_adds_to_it():
    index, stop = HybridIndex.build(DOCUMENTS, HashEncoder()), threading.Event()

    def add():
        number = 0
        while not stop.is_set():
            number += 1
            index.add([Document(f"n{number % 7}", f"Brand new word{number} and other{number}.")])

    thread = threading.Thread(target=add)
    thread.start()
    try:
        twins = [pickle.loads(pickle.dumps(index)) for _ in range(20)]
    finally:
        stop.set()
        thread.join()
    for twin in twins:
        assert twin.search("keeper lamp", 2)
        twin.add([Document("last", "The last wordling.")])
        assert twin.search("wordling", 1)[0].doc_id == "last"


@pytest.mark.parametrize(
    "make",
    [
        lambda: PreciseRAG.from_documents(DOCUMENTS, ScriptedLLM(["yes"]), encoder=HashEncoder()),
        lambda: PreciseRAG.from_documents(DOCUMENTS, OpenAIChat("m", api_key=KEY), encoder=HashEncoder()),
    ],
)
def test_a_pipeline_is_copied(make):
    rag = make()
    for twin in (copy.deepcopy(rag), pickle.loads(pickle.dumps(rag))):
        assert twin.retrieve("Who lit the lamp?") == rag.retrieve("Who lit the lamp?")


def test_components_of_both_frameworks_are_copied():
    langchain = pytest.importorskip("langchain_precise")
    llamaindex = pytest.importorskip("llamaindex_precise")
    index = HybridIndex.build(DOCUMENTS, HashEncoder())
    question = "Who lit the lamp?"
    retriever = langchain.papers.HybridRetriever.from_index(index)
    whole = langchain.PreciseRetriever.from_index(index)
    other = llamaindex.papers.HybridRetriever.from_index(index)
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert copied(retriever).invoke(question) == retriever.invoke(question)
        assert copied(whole).invoke(question) == whole.invoke(question)
        assert [n.node_id for n in copied(other).retrieve(question)] == [
            n.node_id for n in other.retrieve(question)
        ]
        assert copied(llamaindex.PreciseEmbedding()).model_name == llamaindex.PreciseEmbedding().model_name
        assert copied(langchain.papers.RerankCompressor()).name == langchain.papers.RerankCompressor().name


@pytest.mark.parametrize(
    "part",
    [
        load_reranker("packaged"),
        load_reranker("cascade"),
        load_reranker("some/cross-encoder"),
        Segmenter.from_pretrained("small"),
        Segmenter.from_pretrained("sage-minilm"),
        GreedySegmenter(HashEncoder()),
        GradientSelector(),
        RedundancyFilter(encoder=HashEncoder()),
        RelevanceFilter(ScriptedLLM(["yes"])),
        Ledger(),
        ProcessLock(),
    ],
    ids=lambda part: type(part).__name__,
)
def test_stages_are_copied(part):
    for twin in (copy.deepcopy(part), copy.copy(part), pickle.loads(pickle.dumps(part))):
        assert type(twin) is type(part)
        assert getattr(twin, "name", None) == getattr(part, "name", None)


def test_a_cached_encoder_is_copied(tmp_path):
    encoder = CachedEncoder(HashEncoder(), tmp_path / "cache.sqlite")
    twin = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_allclose(twin.encode(["a lamp"]), encoder.encode(["a lamp"]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpenAIChat("m", api_key=KEY, base_url="http://localhost:1"),
        lambda: OpenAIEncoder("m", api_key=KEY, base_url="http://localhost:1"),
        lambda: CohereReranker("m", api_key=KEY, base_url="http://localhost:1"),
    ],
)
def test_a_pickled_client_has_no_key(make):
    client = make()
    saved = pickle.dumps(client)
    assert KEY.encode() not in saved
    assert pickle.loads(saved).name == client.name
    assert copy.deepcopy(client) is client


def test_an_unpickled_chat_model_takes_the_key_of_its_worker(monkeypatch):
    pytest.importorskip("openai")
    saved = pickle.dumps(OpenAIChat("m", api_key=KEY, base_url="http://localhost:1"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LLMAuthenticationError, match="OPENAI_API_KEY"):
        pickle.loads(saved).complete([Message("user", "Hello?")])
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert pickle.loads(saved)._key == KEY


class Unpicklable(HashEncoder):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def test_what_cannot_be_pickled_is_named_with_what_to_do():
    with pytest.raises(InputError, match=r"HybridIndex .* its encoder, of type Unpicklable.*load_index"):
        pickle.dumps(HybridIndex.build(DOCUMENTS, Unpicklable()))
    rag = PreciseRAG.from_documents(DOCUMENTS, lambda prompt: "yes", encoder=HashEncoder())
    with pytest.raises(InputError, match=r"function.*make it in the worker"):
        pickle.dumps(rag)
    with pytest.raises(InputError, match="selector"):
        pickle.dumps(PreciseRAG(rag.index, selector=GradientSelector(count_tokens=lambda text: 1)))


def test_cloudpickle_takes_the_functions_that_pickle_refuses():
    cloudpickle = pytest.importorskip("cloudpickle")
    rag = PreciseRAG.from_documents(DOCUMENTS, lambda prompt: "yes", encoder=HashEncoder())
    assert cloudpickle.loads(cloudpickle.dumps(rag)).llm is not None
    with pytest.raises(InputError, match="make it in the worker"):
        pickle.dumps(rag)


def test_a_segmenter_that_cannot_be_sent_to_processes_says_so():
    segmenter = Segmenter.from_pretrained("small", count_tokens=lambda texts: [1] * len(texts))
    with pytest.raises(InputError, match="processes=1"):
        next(segmenter.segment_many(["One. Two."], processes=2))


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


@has_fork
def test_a_killed_worker_hangs_nobody():
    from tqdm import tqdm

    def die():
        tqdm.get_lock().acquire()
        os.kill(os.getpid(), signal.SIGKILL)

    tqdm.get_lock()
    victim = multiprocessing.get_context("fork").Process(target=die)
    victim.start()
    victim.join(30)
    assert victim.exitcode == -signal.SIGKILL
    assert in_child(lambda: len(found(HybridIndex.build(DOCUMENTS, HashEncoder())))) == 4
    assert len(found(HybridIndex.build(DOCUMENTS, HashEncoder()))) == 4


def test_workers_that_are_spawned_search_too():
    index = HybridIndex.build(DOCUMENTS, HashEncoder())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(found, (index,)) == found(index)


class _Killer:
    """Counts tokens until it is asked for a certain text; then its process is killed."""

    def __call__(self, texts):
        if any("killed" in text for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        return [len(text.split()) for text in texts]


@has_fork
def test_a_dead_worker_is_reported():
    segmenter = Segmenter.from_pretrained("small", count_tokens=_Killer())
    with pytest.raises(WorkerError, match="a worker process died"):
        list(segmenter.segment_many(["One. Two.", "This one is killed. Really."], processes=2))


def test_a_part_that_says_itself_what_is_wrong_is_not_pickled_twice():
    class Part(Portable):
        def __init__(self, part):
            self.part = part

    whole = Part(Part(threading.Lock()))
    with pytest.raises(InputError, match="its part, of type lock"):
        whole.part.__getstate__()
    assert whole.__getstate__() == vars(whole)


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
        return Segmenter.from_pretrained("small").segment_many(texts, processes=2 if kind == "pool" else 1)

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
@pytest.mark.parametrize(("kind", "in_child"), [("greedy", "True"), ("pool", "True"), ("small", "8")])
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
