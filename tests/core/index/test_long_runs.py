"""Many changes in any order: scores are those of an index built at once, and nothing is kept of the past."""

import gc
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import precise_rag
from precise_rag.index import (
    DatabaseIndex,
    DenseIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    load_index,
)
from precise_rag.index.databases import search
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

TOLERANCE = 1e-5
"""Sums of the same numbers in another order differ by less."""
WORDS = [f"word{i}" for i in range(120)]
BUILT: dict[str, tuple[Any, dict[str, Any]]] = {
    "hybrid": (HybridIndex, {"returns": "sentence"}),
    "hybrid with a small pool": (HybridIndex, {"returns": "sentence", "pool": 40}),
    "dense": (DenseIndex, {"chunks": "sentences", "precision": "int8"}),
    "sentence-context": (SentenceContextIndex, {}),
    "word-sentence": (WordSentenceIndex, {"max_candidates": 15}),
}


def documents(choose: random.Random, n_documents: int) -> list[Document]:
    """Documents of sentences, some of which are the same as others and many of which share no word."""
    frequent = [1 / (rank + 1) for rank in range(len(WORDS))]

    def sentence() -> str:
        return " ".join(choose.choices(WORDS, frequent, k=choose.randint(2, 9))).capitalize() + "."

    footers = [sentence() for _ in range(3)]
    return [
        Document(
            f"d{number}",
            " ".join([*(sentence() for _ in range(choose.randint(0, 9))), choose.choice(footers)]),
            {"title": choose.choice(WORDS)},
        )
        for number in range(n_documents)
    ]


N_DOCUMENTS = 20
TEXTS = [document.text for document in documents(random.Random(0), 2 * N_DOCUMENTS)]


def numbered(number: int) -> Document:
    """A document with one of few ids and another text than before, and with metadata of its own.

    The texts come again and again, so that the splitter's own memory, which has a limit, is soon full.
    """
    return Document(f"d{number % N_DOCUMENTS}", TEXTS[number % len(TEXTS)], {"number": number})


def change(index: Any, first: int, end: int) -> int:
    """Replace documents, delete and search now and then; return the bytes that our own code then holds."""
    for number in range(first, end):
        index.add([numbered(number)])
        if number % 5 == 4:
            index.search("word1 word2", 3, filter={"number": {"$gt": number - N_DOCUMENTS}})
            index.neighbours(index.search("word4", 2, returns="sentence"), 1)
            index.delete([numbered(number).id])
    index.encoder.calls.clear()
    gc.collect()
    own = tracemalloc.Filter(True, str(Path(precise_rag.__file__).parent / "*"))
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([own]).traces)


def test_an_index_in_memory_keeps_nothing_of_what_was_replaced() -> None:
    index = HybridIndex(HashEncoder(8))
    tracemalloc.start()
    try:
        before = change(index, 0, 120)
        assert change(index, 120, 240) - before < 60_000
    finally:
        tracemalloc.stop()
    assert len(index._parts) == 1
    assert len(index._parts[0].shard.documents) == len(index.document_ids)


def scores(index: Any, query: str) -> dict[tuple[str, int, int], float]:
    return {(c.doc_id, c.start, c.end): c.score for c in index.search(query, top_k=1_000)}


def in_pieces(index: Any, given: list[Document], choose: random.Random) -> None:
    while given:
        size = choose.randint(1, 25)
        index.add(given[:size])
        given = given[size:]


def changes(seed: int, n_documents: int) -> tuple[list[Document], list[Document], list[str]]:
    """Documents, the same in another order, and queries; all words are rare, some, or none."""
    choose = random.Random(seed)
    found = documents(choose, n_documents)
    queries = [" ".join(choose.choices(WORDS, k=size)) for size in (1, 2, 4)]
    return found, choose.sample(found, len(found)), [*queries, WORDS[0], WORDS[-1], "zyzzyva"]


@pytest.mark.parametrize("name", BUILT)
def test_shuffled_in_pieces_and_saved_the_scores_are_the_same(name: str, tmp_path: Path) -> None:
    kind, options = BUILT[name]
    found, shuffled, queries = changes(3, 120)
    index = kind.build(found, HashEncoder(32), **options)

    def check(other: Any) -> None:
        for query in queries:
            assert scores(other, query) == pytest.approx(scores(index, query), abs=TOLERANCE), query

    check(kind.build(shuffled, HashEncoder(32), **options))
    pieces = kind(HashEncoder(32), **options)
    in_pieces(pieces, shuffled[:70], random.Random(4))
    pieces.save(tmp_path)
    pieces = load_index(tmp_path, HashEncoder(32))
    in_pieces(pieces, shuffled[70:], random.Random(5))
    pieces.add([Document("extra", "Word3 is not for long."), Document("d1", "Another text.")])
    pieces.delete(["extra"])
    pieces.add([document for document in found if document.id == "d1"])
    check(pieces)
    pieces.save(tmp_path)
    check(load_index(tmp_path, HashEncoder(32)))
    pieces.compact()
    check(pieces)


def test_collections_of_databases_have_the_same_scores_in_any_order(
    new_location: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more sentences than the sample that is read, and than the pool, which ends among equal ones."""
    monkeypatch.setattr(search, "_SAMPLE", 100)
    found, shuffled, queries = changes(5, 50)
    made = []
    for texts in (found, shuffled):
        index = DatabaseIndex(new_location(), HashEncoder(32), returns="sentence", pool=60)
        in_pieces(index, texts, random.Random(len(made)))
        made.append(index)
    assert len(made[0]) > 200
    for query in queries:
        one, two = (scores(index, query) for index in made)
        assert sorted(one.values())[-30:] == pytest.approx(sorted(two.values())[-30:], abs=TOLERANCE), query
        both = one.keys() & two.keys()
        assert [one[key] for key in both] == pytest.approx([two[key] for key in both], abs=TOLERANCE), query
