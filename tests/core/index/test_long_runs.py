"""Many changes and searches of one index: what it keeps does not grow with their number."""

import gc
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import precise_rag
from precise_rag.index import HybridIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

N_DOCUMENTS = 20
WORDS = [f"word{i}" for i in range(200)]
DRAWN = random.Random(0)
TEXTS = [
    " ".join(" ".join(DRAWN.choices(WORDS, k=8)).capitalize() + "." for _ in range(3))
    for _ in range(2 * N_DOCUMENTS)
]


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
def test_an_index_in_memory_keeps_nothing_of_what_was_replaced(filter_statistics: str) -> None:
    index = HybridIndex(ForgetfulEncoder(8), filter_statistics=filter_statistics)
    assert growth(index, 120) < 60_000
    assert len(index._parts) == 1
    assert len(index._parts[0].block.documents) == len(index.document_ids)
    assert len(index._ready().narrowed) <= 16
