"""faiss indexes: what they find, and what happens when documents are added and deleted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.index import DenseIndex, dense, table
from precise_rag.index.faiss_rows import FaissBackend, FaissRows
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.documents import read_cases
from support.vectors import NEW, OLD, clustered


@pytest.fixture(autouse=True)
def faiss(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, on one thread; even small shards of rows have an index of it."""
    module = pytest.importorskip("faiss")
    module.omp_set_num_threads(1)
    monkeypatch.setattr(table, "SMALL", 0)
    monkeypatch.setattr(dense, "EXACT_ROWS", 1)
    return module


@pytest.mark.parametrize(("factory", "search", "least"), read_cases("index.json", "factories"))
def test_faiss_finds_what_exact_search_finds(factory: str, search: str, least: float) -> None:
    vectors, shared = clustered(2000), 0
    rows = FaissRows.of(vectors, FaissBackend(factory, search))
    for query in clustered(20, seed=1):
        exact = np.argsort(-(vectors @ query), kind="stable")[:10]
        found, products = rows.best(query, 10)
        shared += len(set(found.tolist()) & set(exact.tolist()))
        if factory == "Flat":
            np.testing.assert_allclose(products, (vectors @ query)[exact], atol=1e-5)
    assert shared / 200 >= least


def test_new_documents_are_compared_until_they_are_many_and_what_cannot_be_built_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
        with pytest.raises(InputError, match="faiss cannot build"):
            DenseIndex(HashEncoder(), backend=f"faiss:{factory}")


def built(index: DenseIndex) -> list[Any]:
    """The faiss index of each shard; None for one that has none."""
    index.search("cat", 1)
    nears = [part.prepared.near for part in index._parts]
    return [None if near is None else near.index for near in nears]


def nearest(index: DenseIndex, query: str, top_k: int, wanted: Any = None) -> dict[str, float]:
    return {c.id: c.score for c in index.search(query, top_k, filter=wanted)}


@pytest.mark.parametrize("backend", ["Flat", "HNSW16@efSearch=64", "IVF4,Flat@nprobe=4", "SQfp16"])
def test_faiss_passes_over_what_was_deleted_or_does_not_match(backend: str) -> None:
    """Each document's own text asks for it, so the deleted ones are always the nearest."""
    documents = [Document(d.id, d.text, {"n": n}) for n, d in enumerate(OLD + NEW)]
    index = DenseIndex.build(documents, HashEncoder(), backend=f"faiss:{backend}")
    (first,) = built(index)
    gone: set[str] = set()
    for document in [*documents[3:8], *documents[20:25]]:
        index.delete([document.id])
        gone.add(document.id)
        exact = DenseIndex.build([d for d in documents if d.id not in gone], HashEncoder())
        among = nearest(index, document.text, 100)
        for wanted in (None, {"n": {"$ne": 9}}, {"n": {"$lt": 12}}, {"n": 99}):
            for top_k in (1, 7) if backend.startswith("HNSW") else (1, 7, 100):  # a graph may not reach all
                found = nearest(index, document.text, top_k, wanted)
                expected = nearest(exact, document.text, top_k, wanted)
                assert sorted(found.values()) == pytest.approx(sorted(expected.values()), abs=2e-3)
                assert found == pytest.approx({id: among[id] for id in found}, abs=1e-4)
                assert not gone & {id.partition(":")[0] for id in found}
        assert built(index) == [first]
    index.delete([d.id for d in OLD[8:]])
    (second,) = built(index)
    assert second is not first
    assert second.ntotal == len(index) == 28


def test_the_faiss_index_of_a_loaded_index_is_built_again(tmp_path: Path) -> None:
    index = DenseIndex.build(OLD, HashEncoder(), backend="faiss:HNSW32@efSearch=200")
    index.delete(["old1", "old2"])
    index.add([NEW[0], OLD[2]])
    index.save(tmp_path)
    for factory in ("HNSW32@efSearch=200", "Flat"):
        loaded = DenseIndex.load(tmp_path, HashEncoder(), backend=f"faiss:{factory}")
        assert [each.ntotal for each in built(loaded)] == [each.ntotal for each in built(index)]
        expected = nearest(index, NEW[0].text, 100)
        assert nearest(loaded, NEW[0].text, 100) == pytest.approx(expected, abs=1e-4)
    with pytest.raises(InputError, match="search parameters 'nonsense=1'"):
        DenseIndex.load(tmp_path, HashEncoder(), backend="faiss:HNSW32@nonsense=1")


class OnGpu:
    """A faiss index as a GPU has it: its parameters are set otherwise, and it finds 2,048 rows at most."""

    def __init__(self, index: Any) -> None:
        self.index, self.asked = index, list[int]()

    def search(self, vectors: np.ndarray, top_k: int) -> Any:
        assert top_k <= 2048
        self.asked.append(top_k)
        return self.index.search(vectors, top_k)


def test_on_gpus_parameters_are_set_and_more_rows_than_a_gpu_finds_come_from_the_cpu(
    faiss: Any, monkeypatch: pytest.MonkeyPatch
) -> None:

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


def test_what_gpus_or_the_installed_faiss_do_not_have_is_one_clear_error(
    faiss: Any, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuse(index: Any) -> Any:
        raise RuntimeError("This index type is not implemented on the GPU")

    monkeypatch.delattr(faiss, "index_cpu_to_all_gpus", raising=False)
    with pytest.raises(InputError, match=r"has no GPU support.*faiss-gpu"):
        DenseIndex(HashEncoder(), backend="faiss-gpu")
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", refuse, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0, raising=False)
    with pytest.raises(InputError, match="sees no GPU"):
        DenseIndex(HashEncoder(), backend="faiss-gpu")
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    with pytest.raises(InputError, match=r"faiss has no 'HNSW32' for GPUs: .* pass gpu=False"):
        FaissRows.of(clustered(100), FaissBackend("HNSW32", gpu=True))
