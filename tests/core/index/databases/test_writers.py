"""Crashes, other writers and readers: a document is always there with all of its sentences, or not at all."""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from precise_rag.errors import IndexFormatError, InputError
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

_SIZE = 30
_WRITER = f"""
import random, sys
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

location, name, ids, rounds, share = sys.argv[1:]
index, draw = DatabaseIndex(location, HashEncoder(16)), random.Random(name)
print("ready", flush=True)
for number in range(int(rounds)):
    some, change = draw.sample(ids, 3), draw.random()
    if change < float(share):
        animals = draw.choices("dog fish owl fox hen".split(), k={_SIZE})
        text = "".join(f"The {{name}}{{number}} cat saw {{i}} {{a}}. " for i, a in enumerate(animals))
        index.add([Document(i, text, {{"draw": draw.random()}}) for i in some])
    elif change < 0.95:
        index.delete(set(some) & set(index.document_ids))
    else:
        index.optimize()
"""


def writer(location: str, name: str, ids: str, rounds: int, share: float) -> "subprocess.Popen[str]":
    """A process that adds documents, and deletes some unless the share of additions is 1."""
    command = [sys.executable, "-c", _WRITER, location, name, ids, str(rounds), str(share)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def check_whole(index: DatabaseIndex) -> None:
    """Each document that is found has all of its sentences, all from one of its versions."""
    found = index.search("cat saw", 10_000, returns="sentence")
    assert set(Counter(candidate.doc_id for candidate in found).values()) <= {_SIZE}
    versions = {(candidate.doc_id, candidate.text.split()[1]) for candidate in found}
    assert len(versions) == len({candidate.doc_id for candidate in found})


def filled(location: str) -> DatabaseIndex:
    text = "".join(f"The old cat saw {i}. " for i in range(_SIZE))
    return DatabaseIndex.build([Document(i, text) for i in "abc"], HashEncoder(16), location=location)


def scores(index: DatabaseIndex) -> dict[str, dict[str, float]]:
    """The scores of all sentences for a question, by their ids."""
    found = index.search("Which cat saw an owl?", 1_000, returns="sentence")
    return {c.id: {"score": c.score, **c.scores} for c in found}


def contents(index: DatabaseIndex) -> list[Document]:
    return [index.document(identifier) for identifier in sorted(index.document_ids)]


@pytest.mark.slow
def test_what_a_killed_writer_leaves_is_whole_and_scores_as_a_rebuilt_collection(
    new_location: Callable[[], str],
) -> None:
    location, draw = new_location(), random.Random(0)
    index = filled(location)
    for number in range(5):
        process = writer(location, f"killed{number}-", "abcdefgh", 10_000, 0.7)
        time.sleep(draw.uniform(0, 0.6))
        process.kill()
        process.communicate()
        index.add([Document("whole", "The new cat saw. " * _SIZE)])
        check_whole(index)
        documents, found = contents(index), scores(index)
        while contents(index) != documents:  # the server has just finished what the writer asked for last
            documents, found = contents(index), scores(index)
        rebuilt = DatabaseIndex.build(documents, HashEncoder(16), location=new_location())
        expected = scores(rebuilt)
        assert found.keys() == expected.keys()
        for identifier, its in expected.items():
            assert found[identifier] == pytest.approx(its, rel=1e-4, abs=1e-4, nan_ok=True)
        assert len(index) == len(rebuilt)


def test_two_writers_and_a_reader(location: str) -> None:
    index = filled(location)
    processes = [writer(location, name, "abc", 6, 1) for name in ("one", "two")]
    while any(process.poll() is None for process in processes):
        check_whole(index)
    for process in processes:
        assert process.wait() == 0
        process.communicate()
    check_whole(index)
    assert sorted(index.document_ids) == ["a", "b", "c"]
    assert len(index) == 3 * _SIZE


def test_several_writers_make_one_collection(location: str) -> None:
    """Each has seen that it did not exist."""
    indexes = [DatabaseIndex(location, HashEncoder()) for _ in range(6)]
    start = threading.Barrier(len(indexes))

    def write(number: int) -> None:
        start.wait()
        indexes[number].add([Document(f"d{number}", "The cat sleeps.")])

    with ThreadPoolExecutor(len(indexes)) as pool:
        list(pool.map(write, range(len(indexes))))
    assert len(indexes[0].document_ids) == len(indexes)


def test_a_collection_that_another_process_has_made_otherwise_is_not_filled(location: str) -> None:
    others = {n: DatabaseIndex(location, HashEncoder(n), alpha=n / 10) for n in (9, 8)}
    same, late = DatabaseIndex(location, HashEncoder(8)), DatabaseIndex(location, HashEncoder(9))
    assert len(same) == 0
    DatabaseIndex.build([Document("a", "The cat sleeps.")], HashEncoder(8), location=location)
    assert (len(same), same.document_ids, same.document("a").text) == (1, ("a",), "The cat sleeps.")
    for size, match in ((9, "was built with encoder"), (8, "alpha cannot change")):
        with pytest.raises((IndexFormatError, InputError), match=match):
            others[size].add([Document("b", "It purrs.")])
    made = iter((None, late.engine.settings()))  # the second time, when it has been made meanwhile
    late.engine.settings = lambda: next(made)  # type: ignore[method-assign]
    with pytest.raises(IndexFormatError, match="was built with encoder"):
        late.add([Document("b", "It purrs.")])
    assert same.document_ids == ("a",)


@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_new_metadata_never_meets_another_writers_text(
    change: str, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer has seen that only the metadata is new, and then another one changes the text."""
    index = DatabaseIndex.build([Document("a", "The old cat.")], HashEncoder(), location=location)
    other, digests = DatabaseIndex(location, HashEncoder()), index.engine.digests

    def read_before_the_change(ids: Any = None) -> dict[str, str]:
        monkeypatch.undo()
        found = digests(ids)
        if change == "replaced":
            other.add([Document("a", "The new dog.", {"word": "new"})])
        else:
            other.delete(["a"])
        return found

    monkeypatch.setattr(index.engine, "digests", read_before_the_change)
    mine = Document("a", "The old cat.", {"word": "old"})
    index.add([mine])
    assert index.document("a") == mine
    assert [c.text for c in index.search("dog cat", returns="sentence")] == ["The old cat."]
