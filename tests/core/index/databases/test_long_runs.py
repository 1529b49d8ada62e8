"""Many changes and searches of one index: what it keeps does not grow with their number."""

import gc
import random
import tracemalloc
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import precise_rag
from precise_rag.index import DatabaseIndex, HybridIndex
from precise_rag.index.databases.lance import LanceEngine, engine
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

N_DOCUMENTS = 20
WORDS = [f"word{i}" for i in range(200)]
DRAWN = random.Random(0)
TEXTS = [
    " ".join(" ".join(DRAWN.choices(WORDS, k=8)).capitalize() + "." for _ in range(3))
    for _ in range(2 * N_DOCUMENTS)
]
CACHE = 2**20


class ForgetfulEncoder(HashEncoder):
    """Keeps no record of the texts."""

    def encode(self, texts: Any, *, show_progress: bool = False) -> Any:
        vectors = super().encode(texts)
        self.calls.clear()
        return vectors


def document(number: int) -> Document:
    """A document with one of few ids and another text than before, and with metadata of its own.

    The texts come again and again, so that the splitter's own memory, which has a limit, is soon full.
    """
    return Document(f"d{number % N_DOCUMENTS}", TEXTS[number % len(TEXTS)], {"number": number})


def change(index: Any, first: int, end: int) -> None:
    """Replace documents one by one, and delete, filter and search now and then."""
    for number in range(first, end):
        index.add([document(number)])
        if number % 5 == 4:
            index.search("word1 word2", 3, filter={"number": {"$gt": number - N_DOCUMENTS}})
            index.neighbours(index.search("word4", 2, returns="sentence"), 1)
            index.delete([document(number).id])


def growth(index: Any, n: int) -> int:
    """Bytes of our own code that `n` changes add to those of the changes before."""
    change(index, 0, 80)
    gc.collect()
    tracemalloc.start()
    try:
        change(index, 80, 120)
        before = ours()
        change(index, 120, 120 + n)
        return ours() - before
    finally:
        tracemalloc.stop()


def ours() -> int:
    """Bytes that the library holds; other tests may have left threads that work."""
    gc.collect()
    own = tracemalloc.Filter(True, str(Path(precise_rag.__file__).parent / "*"))
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([own]).traces)


@pytest.mark.parametrize("filter_statistics", ["shared", "matching"])
@pytest.mark.parametrize("n", [120, pytest.param(6_400, marks=pytest.mark.torture)])
def test_an_index_in_memory_keeps_nothing_of_what_was_replaced(n: int, filter_statistics: str) -> None:
    index = HybridIndex(ForgetfulEncoder(8), filter_statistics=filter_statistics)
    assert growth(index, n) < 60_000
    assert len(index._rows.parts) == 1
    assert len(index._rows.parts[0].segment.words) <= len(WORDS)
    assert len(index._rows.snapshot().narrowed) <= 16


def lance_engine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[LanceEngine, list[Any]]:
    """An engine that tidies often, and the sessions that it has begun."""
    lancedb = pytest.importorskip("lancedb")
    sessions: list[Any] = []
    begin = lancedb.Session

    def begun(*sizes: int) -> Any:
        sessions.append(begin(*sizes))
        return sessions[-1]

    monkeypatch.setattr(lancedb, "Session", begun)
    monkeypatch.setattr(engine, "_TIDIED_AFTER", 20)
    return LanceEngine(folder / "long.lance", cache_bytes=CACHE), sessions


@pytest.mark.parametrize("n", [60, pytest.param(3_000, marks=pytest.mark.torture)])
def test_a_collection_in_lancedb_keeps_few_versions_and_files(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LanceDB's caches stay in their limits; they were what grew with each version."""
    monkeypatch.setattr(engine, "_VERSIONS_KEPT", timedelta(milliseconds=1))
    made, sessions = lance_engine(tmp_path, monkeypatch)
    index = DatabaseIndex(made, ForgetfulEncoder(8))
    change(index, 0, n)
    rows = made._open()
    assert len(rows.list_versions()) < 2 * 20
    assert rows.stats()["fragment_stats"]["num_fragments"] < 2 * 20
    assert len(list(tmp_path.rglob("*.lance"))) < 3 * 20
    assert len(sessions) == 1
    assert sessions[0].size_bytes < 2 * CACHE
    assert {number for number in range(N_DOCUMENTS) if number % 5 != 4} == {
        int(name[1:]) for name in index.document_ids
    }


def test_a_search_goes_on_in_its_version_while_another_process_tidies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = lance_engine(tmp_path, monkeypatch)
    index = DatabaseIndex(made, ForgetfulEncoder(8))
    change(index, 0, 4)
    with LanceEngine(made.location).view() as view:
        before = view.count(), view.between([("d0", 0, 9)], "place")
        change(index, 4, 44)
        assert made._open().version > 2 * 20
        assert (view.count(), view.between([("d0", 0, 9)], "place")) == before
