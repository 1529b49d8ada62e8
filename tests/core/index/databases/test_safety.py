"""Crashes, other writers and readers: a document is always there with all of its sentences, or not at all."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from precise_rag.errors import DatabaseError, InputError
from precise_rag.index import DatabaseIndex, HybridIndex, load_index
from precise_rag.index.databases import is_database
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

_SIZE = 30
_WRITER = f"""
import sys
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
location, word, ids, rounds = sys.argv[1], sys.argv[2], sys.argv[3].split(","), int(sys.argv[4])
index = DatabaseIndex(location, HashEncoder())
print("ready", flush=True)
for number in range(rounds):
    text = "".join(f"The {{word}}{{number}} cat sleeps {{i}}. " for i in range({_SIZE}))
    index.add([Document(i, text, {{"word": word}}) for i in ids])
"""


def writer(location: str, word: str, ids: str, rounds: int) -> "subprocess.Popen[str]":
    started = subprocess.Popen(
        [sys.executable, "-c", _WRITER, location, word, ids, str(rounds)], stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def check_whole(index: DatabaseIndex) -> None:
    """Each document that is found has all of its sentences, all from one of its versions."""
    found = index.search("cat sleeps", 10_000, returns="sentence")
    assert set(Counter(candidate.doc_id for candidate in found).values()) <= {_SIZE}
    for identifier in {candidate.doc_id for candidate in found}:
        texts = [candidate.text.split()[1] for candidate in found if candidate.doc_id == identifier]
        assert len(set(texts)) == 1


def filled(location: str) -> DatabaseIndex:
    text = "".join(f"The old cat sleeps {i}. " for i in range(_SIZE))
    return DatabaseIndex.build([Document("a", text), Document("b", text)], HashEncoder(), location=location)


def test_a_killed_writer_leaves_each_document_whole(location: str) -> None:
    index = filled(location)
    for wait in (0.05, 0.2, 0.4):
        process = writer(location, f"killed{wait}-", "a,b,c", 10_000)
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        check_whole(index)
        index.add([Document("d", "Another cat sleeps.")])
        index.delete(["d"])
        assert {"a", "b"} <= set(index.document_ids) <= {"a", "b", "c"}


def test_two_writers_and_a_reader(location: str) -> None:
    index = filled(location)
    processes = [writer(location, word, "a,b,c", 6) for word in ("one", "two")]
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


def test_an_index_is_opened_by_its_location(location: str) -> None:
    filled(location)
    opened = load_index(location, HashEncoder(), returns="sentence")
    assert isinstance(opened, DatabaseIndex)
    assert len(opened.search("cat", 5)) == 5
    opened.optimize()
    check_whole(opened)


def test_the_sentences_around_a_sentence(location: str) -> None:
    text = "".join(f"The cat number{i} sleeps. " for i in range(20)) + "\n\nEnd."
    document = Document("a", text)
    index = DatabaseIndex.build([document], HashEncoder(), location=location)
    in_memory = HybridIndex.build([document], HashEncoder())
    found = index.search("number3 number5 number12", 3, returns="sentence")
    for reach in (1, 3, 100):
        ours, theirs = index.neighbours(found, reach), in_memory.neighbours(found, reach)
        assert [stretch.text for stretch in ours] == [stretch.text for stretch in theirs]
        for a, b in zip(ours, theirs, strict=True):
            assert [(c.id, c.text, c.passage) for c in a.sentences] == [
                (c.id, c.text, c.passage) for c in b.sentences
            ]


@pytest.mark.parametrize("dimension", [64, 60], ids=["whole bytes", "others"])
def test_an_approximate_index_finds_what_an_exact_search_does(
    dimension: int, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precise_rag.index.databases.engine._INDEXED_FROM", 1)
    documents = [Document(f"d{i}", f"Cat number {i} sleeps. It dreams of fish {i}.") for i in range(300)]
    index = DatabaseIndex.build(documents, HashEncoder(dimension), location=location)
    queries = [f"Which cat dreams of fish {i}?" for i in range(0, 300, 50)]
    exact = [[c.id for c in index.search(query, 3, returns="sentence")] for query in queries]
    index.optimize()
    index.add([Document("new", "A dog barks at zebras.")])
    found = [[c.id for c in index.search(query, 3, returns="sentence")] for query in queries]
    same = [len(set(a) & set(b)) / len(a) for a, b in zip(exact, found, strict=True)]
    assert sum(same) / len(same) > 0.9
    assert index.search("zebras", 1)[0].doc_id == "new"


def test_documents_with_vectors_are_not_encoded(location: str) -> None:
    encoder = HashEncoder()
    index = DatabaseIndex(location, encoder)
    vector = encoder.encode(["felines"])[0]
    encoder.calls.clear()
    index.add([Document("a", "The cat sleeps. It purrs.")], vectors={"a": vector})
    assert not encoder.calls
    assert index.search("felines", 1)[0].scores["dense"] == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("settings", [{}, {"headings": False, "surroundings": None, "k1": 0.0}])
def test_scores_are_those_of_hybrid_index(settings: dict[str, Any], location: str) -> None:
    """So vectors and words count alike in both, and titles and headings.

    Which words are in passages is estimated, but passages of one sentence have those of the sentence.
    """
    documents = [
        Document(
            "a", "# Pets\n\nThe cat sleeps on a mat. The dog barks.\n\n## Food\n\nIt eats fish. It drinks."
        ),
        Document(
            "b", "Banks raise rates. Savers are glad. Cats sleep, and a cat in a bank.", {"title": "Money"}
        ),
    ]
    encoder = HashEncoder()
    options = {"passages": "sentences", **settings}
    index = DatabaseIndex.build(documents, encoder, location=location, precision="float32", **options)
    in_memory = HybridIndex.build(documents, encoder, **options)
    for query in ("Where does the cat sleep on a mat?", "food for pets", "money"):
        ours = {c.id: c.scores for c in index.search(query, 100, returns="sentence")}
        theirs = {c.id: c.scores for c in in_memory.search(query, 100, returns="sentence")}
        assert ours.keys() == theirs.keys()
        for identifier, expected in theirs.items():
            for name in ("dense", "bm25") if index.settings.headings else ("dense", "bm25", "bm25_passage"):
                assert ours[identifier][name] == pytest.approx(expected[name], abs=1e-4)


def test_candidates_know_what_stands_above_them(location: str) -> None:
    """So rerankers read it, as behind HybridIndex."""
    documents = [
        Document("a", "# Pets\n\nThe cat sleeps.\n\n## Food\n\nIt eats fish.", {}),
        Document("b", "Banks raise rates.", {"title": "Money\0, “and” more 水"}),
        Document("c", "Nothing stands above this.", {"title": 7}),
    ]
    index = DatabaseIndex.build(documents, HashEncoder(), location=location)
    found = {c.text: c.above for c in index.search("food for pets and banks", 9, returns="sentence")}
    assert found["It eats fish."] == ("Pets", "Food")
    assert found["The cat sleeps."] == ("Pets",)
    (money,) = found["Banks raise rates."]
    assert money.startswith("Money")
    assert money.endswith(", “and” more 水")
    assert found["Nothing stands above this."] == found["# Pets"] == ()
    near = index.neighbours(index.search("fish", 1, returns="sentence"), 1)
    assert {s.text: s.above for stretch in near for s in stretch.sentences}.items() <= found.items()


def test_a_new_title_is_read_anew(location: str) -> None:
    index = DatabaseIndex.build([Document("a", "It sleeps.")], HashEncoder(), location=location)
    before = index.search("felines", 1)[0].scores["dense"]
    index.add([Document("a", "It sleeps.", {"title": "felines"})])
    assert index.search("felines", 1)[0].scores["dense"] > before + 0.1


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


def test_a_part_of_the_text_that_becomes_the_title_is_read_anew(location: str) -> None:
    """The text and the title are told apart, whatever characters they hold."""
    index = DatabaseIndex.build([Document("a", "A dog barks. cats")], HashEncoder(), location=location)
    index.add([Document("a", "A dog barks. ", {"title": "cats"})])
    assert index.document("a").text == "A dog barks. "


def test_documents_come_back(location: str) -> None:
    text = "  The cat sleeps.\n\n  It purrs. \n"
    given = [Document("a", text, {"year": 1, "tags": ["x"]}), Document("b", " ", {"year": 2})]
    index = DatabaseIndex.build(given, HashEncoder(), location=location)
    assert index.document("a") == given[0]
    assert index.document("b") == Document("b", "", {"year": 2})
    with pytest.raises(InputError, match="no document 'c'"):
        index.document("c")


def test_a_list_is_checked_before_anything_is_written(location: str) -> None:
    index = DatabaseIndex(location, HashEncoder())
    many = [Document(f"d{i}", "A cat.") for i in range(300)]
    with pytest.raises(InputError, match="metadata cannot be saved"):
        index.add([*many, Document("odd", "A cat.", {"x": object()})])
    with pytest.raises(InputError, match="two documents"):
        index.add([*many, many[0]])
    assert index.document_ids == ()


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (Document("\ud800", "text"), "its id"),
        (Document("bad", "half \ud800"), "its text"),
        (Document("bad", "no\0thing"), "its text.*NUL"),
        (Document("bad", "text", {"b": "whole", "a": "\ud800"}), "its metadata 'a'"),
        (Document("bad", "text", {"a": ["x", {"b\udfff": 1}]}), "its metadata 'a'"),
        (Document("bad", "text", {"a": 10**5000}), "metadata cannot be saved"),
    ],
    ids=["id", "text", "nul", "metadata", "key", "number"],
)
def test_a_document_that_no_database_holds_is_named(bad: Document, named: str, location: str) -> None:
    index = DatabaseIndex.build([Document("good", "A cat.")], HashEncoder(), location=location)
    with pytest.raises(InputError, match=f"document {re.escape(repr(bad.id))}: .*({named})"):
        index.add([Document("other", "A dog."), bad])
    assert index.document_ids == ("good",)


def test_values_that_no_filter_can_ask_for_are_kept(location: str) -> None:
    metadata = {"a": 10**400, "b": float("inf"), "c": [1, 10**400]}
    index = DatabaseIndex.build([Document("d", "A cat.", metadata)], HashEncoder(), location=location)

    found = index.search("cat", filter={"a": {"$exists": True}, "c": {"$contains": 1}})
    assert [candidate.metadata for candidate in found] == [metadata]


def test_long_lists_of_values_find_what_short_ones_do(location: str) -> None:
    documents = [
        Document(f"d{i}", "A cat.", {"a": value}) for i, value in enumerate([1, 2.0, "1", True, [1]])
    ]
    index = DatabaseIndex.build(documents, HashEncoder(), location=location)

    wanted = [1, 2, *range(1_000, 1_500), "x"]
    found = index.search("cat", filter={"a": {"$in": wanted}})
    assert {candidate.doc_id for candidate in found} == {"d0", "d1"}


def test_passwords_of_an_address_are_in_no_error_and_no_pickle() -> None:
    pytest.importorskip("psycopg")
    from precise_rag.index.databases.engine import PostgresEngine

    address = "postgresql://me:first5ecret@127.0.0.1:1/db?password=other5ecret&connect_timeout=1"
    engine = PostgresEngine(address)
    with pytest.raises(DatabaseError) as raised:
        engine.settings()
    shown = f"{raised.value} {engine.location} {engine!r} {pickle.dumps(engine)!r}"
    assert "5ecret" not in shown
    with pytest.raises(InputError, match="is not a database URL") as refused:
        PostgresEngine("postgresql://me:first5ecret@[::1/db")
    assert "5ecret" not in str(refused.value)


def test_connections_that_the_server_ended_are_opened_again(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    location = f"{postgres}&collection=ended&application_name=ended"
    index = DatabaseIndex.build([Document("a", "A cat.")], HashEncoder(), location=location)
    query = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'ended'"
    for change in (lambda: index.add([Document("b", "A dog.")]), lambda: index.delete(["a"])):
        with psycopg.connect(postgres) as connection:
            assert set(connection.execute(query).fetchall()) == {(True,)}
        change()
    assert index.document_ids == ("b",)


def test_options_of_an_address_reach_the_server(postgres: str) -> None:
    pytest.importorskip("psycopg")
    from precise_rag.index.databases.connections import Connections

    options = "-c%20statement_timeout%3D7s%20-c%20work_mem%3D9MB"
    with Connections(f"{postgres}&options={options}").connection() as db:
        assert [db.execute(f"SHOW {name}").fetchone()[0] for name in ("statement_timeout", "work_mem")] == [
            "7s",
            "9MB",
        ]


def test_the_user_of_an_address_is_no_secret() -> None:
    pytest.importorskip("psycopg")
    from precise_rag.index.databases.engine import PostgresEngine

    engine = PostgresEngine("postgresql://postgres@127.0.0.1:1/postgres?connect_timeout=1")
    with pytest.raises(DatabaseError, match=r"^postgresql://127\.0\.0\.1:1/postgres"):
        engine.settings()


@pytest.mark.parametrize("location", ["mongodb://host/db", "https://host/rows", "milvus:rows.db"])
def test_another_database_names_from_store(location: str) -> None:
    with pytest.raises(InputError, match=r"is not a database: give postgresql://.*from_store"):
        DatabaseIndex(location, HashEncoder())


def test_a_url_is_not_taken_for_a_folder() -> None:
    with pytest.raises(InputError, match=r"is not a database: give postgresql://.*from_store"):
        load_index("mongodb://host/db")


def test_a_folder_may_have_the_name_of_a_database() -> None:
    assert not is_database("postgres")
    assert not is_database("postgresql")
