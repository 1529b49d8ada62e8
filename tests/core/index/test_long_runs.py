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


def document(number: int) -> Document:
    """A document with one of few ids and another text than before, and with metadata of its own.

    The texts come again and again, so that the splitter's own memory, which has a limit, is soon full.
    """
    return Document(f"d{number % N_DOCUMENTS}", TEXTS[number % len(TEXTS)], {"number": number})


def change(index: Any, first: int, end: int) -> int:
    """Replace documents, delete and search now and then; returns the bytes that the library then holds."""
    for number in range(first, end):
        index.add([document(number)])
        if number % 5 == 4:
            index.search("word1 word2", 3, filter={"number": {"$gt": number - N_DOCUMENTS}})
            index.neighbours(index.search("word4", 2, returns="sentence"), 1)
            index.delete([document(number).id])
    index.encoder.calls.clear()
    gc.collect()
    own = tracemalloc.Filter(
        True, str(Path(precise_rag.__file__).parent / "*")
    )  # not of other tests' threads
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([own]).traces)


@pytest.mark.parametrize("filter_statistics", ["shared", "matching"])
def test_an_index_in_memory_keeps_nothing_of_what_was_replaced(filter_statistics: str) -> None:
    index = HybridIndex(HashEncoder(8), filter_statistics=filter_statistics)
    tracemalloc.start()
    try:
        before = change(index, 0, 120)
        assert change(index, 120, 240) - before < 60_000
    finally:
        tracemalloc.stop()
    assert len(index._parts) == 1
    assert len(index._parts[0].block.documents) == len(index.document_ids)
    assert len(index._ready().narrowed) <= 16
