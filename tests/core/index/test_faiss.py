"""faiss indexes: what they find, and what happens when documents are added and deleted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.index import DenseIndex, HybridIndex, dense, table
from precise_rag.index.faiss_rows import FaissBackend, FaissRows
from precise_rag.index.table import Block, Part
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.vectors import clustered

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]


def backend(factory: str, search: str) -> str:
    return f"faiss:{factory}@{search}" if search else f"faiss:{factory}"


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
def test_faiss_finds_what_exact_search_finds(
    factory: str, search: str, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    faiss = pytest.importorskip("faiss")
    monkeypatch.setattr(dense, "EXACT_ROWS", 1)
    faiss.omp_set_num_threads(1)
    rows = clustered(2000)
    spans = np.stack([np.arange(2000), np.arange(2000) + 1], axis=1)
    columns = {"spans": spans, "n_tokens": np.ones(2000, dtype=np.int64), "vectors": rows}
    block = Block.of([Document("d", "x" * 2000)], [columns])
    index = DenseIndex(HashEncoder(), backend=backend(factory, search))
    index._parts = (Part(block),)
    shared = 0
    for query in clustered(20, seed=1):
        exact = np.argsort(-(rows @ query), kind="stable")[:10]
        found = index.search("", 10, vector=query)
        shared += len({c.start for c in found} & set(exact.tolist()))
        if factory == "Flat":
            np.testing.assert_allclose([c.score for c in found], np.sort(rows @ query)[::-1][:10], atol=1e-5)
    assert shared / 200 >= least


def test_new_documents_are_compared_until_they_are_many_and_what_cannot_be_built_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(table, "SMALL", 0)
    monkeypatch.setattr(dense, "EXACT_ROWS", 40)
    index = DenseIndex.build(OLD, HashEncoder(), chunks="sentences", backend="faiss")
    (first,) = built(index)
    index.add(NEW[:5])
    assert index.search("new dog number 3 barks", 1)[0].doc_id == "new3"
    assert built(index)[0] is first
    assert built(index)[1] is None
    index.add(NEW[5:])
    assert built(index)[-1].ntotal == len(index) == 100
    for factory in ("Nonsense", "IVF4096,PQ7"):
        with pytest.raises(Exception, match="faiss cannot build"):
            DenseIndex.build(OLD, HashEncoder(), chunks="sentences", backend=f"faiss:{factory}").search("cat")


def test_a_gpu_without_a_gpu_build_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    faiss = pytest.importorskip("faiss")
    monkeypatch.delattr(faiss, "index_cpu_to_all_gpus", raising=False)
    with pytest.raises(InputError, match=r"has no GPU support.*faiss-gpu"):
        DenseIndex(HashEncoder(), backend="faiss-gpu")
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", lambda index: index, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0, raising=False)
    with pytest.raises(InputError, match="sees no GPU"):
        DenseIndex(HashEncoder(), backend="faiss-gpu")


def built(index: DenseIndex) -> list[Any]:
    """The faiss index of each block; None for one that has none."""
    index.search("cat", 1)
    nears = [part.prepared.near for part in index._parts]
    return [None if near is None else near.index for near in nears]


def nearest(index: DenseIndex, query: str, top_k: int) -> dict[str, float]:
    return {c.id: c.score for c in index.search(query, top_k)}


@pytest.mark.parametrize("factory", ["Flat", "HNSW16", "IVF4,Flat", "SQfp16"])
def test_faiss_passes_over_what_was_deleted(factory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document's own text asks for it, so the deleted ones are always the nearest."""
    faiss = pytest.importorskip("faiss")
    faiss.omp_set_num_threads(1)
    monkeypatch.setattr(table, "SMALL", 0)
    monkeypatch.setattr(dense, "EXACT_ROWS", 1)
    search = {"IVF4,Flat": "nprobe=4", "HNSW16": "efSearch=64"}.get(factory, "")
    index = DenseIndex.build(OLD + NEW, HashEncoder(), backend=backend(factory, search))
    (first,) = built(index)
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
            among = nearest(index, document.text, 100)
            assert found == pytest.approx({id: among[id] for id in found}, abs=1e-4)
            assert not gone & {id.partition(":")[0] for id in found}
        assert built(index) == [first]
    index.delete([d.id for d in OLD[8:]])
    (second,) = built(index)
    assert second is not first
    assert second.ntotal == len(index) == 28


def test_a_saved_faiss_index_is_used_if_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(table, "SMALL", 0)
    monkeypatch.setattr(dense, "EXACT_ROWS", 1)
    index = DenseIndex.build(OLD, HashEncoder(), backend="faiss:HNSW32")
    index.delete(["old1", "old2"])
    index.add([Document("old7", "A heron waits in the reeds."), OLD[2]])
    rest = [d for d in OLD if d.id not in ("old1", "old7")]
    expected = DenseIndex.build([*rest, Document("old7", "A heron waits in the reeds.")], HashEncoder())
    index.save(tmp_path / "index")
    monkeypatch.setattr(FaissRows, "of", lambda *_: pytest.fail("was built again"))
    trusting = DenseIndex.load(tmp_path / "index", HashEncoder(), trusted=True)
    assert [each.ntotal for each in built(trusting)] == [each.ntotal for each in built(index)]
    for asked in (index, trusting):
        assert nearest(asked, "heron in the reeds", 100) == pytest.approx(
            nearest(expected, "heron in the reeds", 100), abs=1e-4
        )


def test_a_saved_faiss_index_of_another_factory_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(dense, "EXACT_ROWS", 1)
    index = DenseIndex.build(OLD + NEW, HashEncoder(), backend="faiss:HNSW16@efSearch=200")
    index.save(tmp_path)
    made: list[FaissBackend] = []
    of = FaissRows.of

    def counted(vectors: Any, backend: FaissBackend) -> FaissRows:
        made.append(backend)
        return of(vectors, backend)

    monkeypatch.setattr(FaissRows, "of", counted)
    built(DenseIndex.load(tmp_path, HashEncoder()))
    built(DenseIndex.load(tmp_path, HashEncoder(), trusted=True, backend="faiss:HNSW16"))
    built(DenseIndex.load(tmp_path, HashEncoder(), trusted=True, backend="faiss:Flat"))
    assert made == [FaissBackend("HNSW16", "efSearch=200"), FaissBackend("Flat")]
    with pytest.raises(InputError, match="search parameters 'nonsense=1'"):
        DenseIndex.load(tmp_path, HashEncoder(), trusted=True, backend="faiss:HNSW16@nonsense=1")


def test_filters_and_changes_find_what_they_find_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(dense, "EXACT_ROWS", 40)
    documents = [Document(d.id, d.text, {"even": n % 2 == 0, "n": n}) for n, d in enumerate(OLD + NEW)]
    by_faiss = DenseIndex.build(documents, HashEncoder(), chunks="sentences", backend="faiss")
    by_numpy = DenseIndex.build(documents, HashEncoder(), chunks="sentences")
    assert built(by_faiss)[0] is not None
    for wanted in ({"even": True}, {"n": {"$lt": 3}}, {"n": 99}, {"n": {"$ne": 5}}):
        for query in ("old cat number 3", "a dog runs"):
            found = by_faiss.search(query, 10, filter=wanted)
            expected = by_numpy.search(query, 10, filter=wanted)
            assert [c.score for c in found] == pytest.approx([c.score for c in expected], abs=1e-5)


def test_only_a_dense_index_takes_faiss() -> None:
    with pytest.raises(InputError, match="unexpected keyword argument 'backend'"):
        HybridIndex(HashEncoder(), backend="faiss")
    for backend in ("torch", "faiss:", "cuda"):
        with pytest.raises(InputError, match=f"backend must be 'numpy' or .*, got '{backend}'"):
            DenseIndex(HashEncoder(), backend=backend)


class OnGpu:
    """A faiss index as a GPU has it: its parameters are set otherwise, and it finds 2,048 rows at most."""

    def __init__(self, index: Any) -> None:
        self.index, self.asked = index, list[int]()

    def search(self, vectors: np.ndarray, top_k: int) -> Any:
        assert top_k <= 2048
        self.asked.append(top_k)
        return self.index.search(vectors, top_k)


def test_on_gpus_parameters_are_set_and_more_rows_than_a_gpu_finds_come_from_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faiss = pytest.importorskip("faiss")

    class GpuParameterSpace:
        def set_index_parameters(self, index: OnGpu, search: str) -> None:
            faiss.ParameterSpace().set_index_parameters(index.index, search)

    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", lambda i: OnGpu(faiss.clone_index(i)), raising=False)
    monkeypatch.setattr(faiss, "GpuParameterSpace", GpuParameterSpace, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    vectors = clustered(3000)
    rows = FaissRows.of(vectors, FaissBackend("IVF16,Flat", "nprobe=16", gpu=True))
    assert rows.searched.index.nprobe == rows.index.nprobe == 16
    exact = np.argsort(-(vectors @ vectors[0]), kind="stable")
    for top_k, asked in ((10, [10]), (2048, [10, 2048]), (2900, [10, 2048])):
        found, products = rows.best(vectors[0], top_k)
        assert len(set(found.tolist()) & set(exact[:top_k].tolist())) >= top_k - 2
        assert products == pytest.approx(np.sort(vectors @ vectors[0])[::-1][:top_k], abs=1e-5)
        assert rows.searched.asked == asked


def test_a_factory_that_gpus_do_not_have_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    faiss = pytest.importorskip("faiss")

    def refuse(index: Any) -> Any:
        raise RuntimeError("This index type is not implemented on the GPU")

    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", refuse, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    with pytest.raises(InputError, match=r"faiss has no 'HNSW32' for GPUs: .* pass gpu=False"):
        FaissRows.of(clustered(100), FaissBackend("HNSW32", gpu=True))
