"""Every database means the same by a filter as the filter itself does, and nothing else gets through it."""

import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from precise_rag.filters import Condition, Field, Filter
from precise_rag.index import DatabaseIndex
from precise_rag.index.databases.engine import Engine
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

_MINE = [
    Document(f"mine{i}", f"The {animal} sleeps on the mat. It eats {food} every day.", {"tenant": "me"})
    for i, (animal, food) in enumerate([("cat", "fish"), ("dog", "meat"), ("cow", "grass")])
]
_THEIRS = [
    Document(f"theirs{i}", "Which cat eats fish? The cat sleeps. " * (i + 1), {"tenant": "them"})
    for i in range(30)
]
_FIELDS = ["a", "b.c", 'd"e', "f'g", "h\\i", "j k", "ü", "%", "[0]", "n_1"]
_STRINGS = [
    "",
    "a",
    "A",
    "ab",
    "b",
    "a'b",
    'a"b',
    "a\\b",
    "%",
    "_",
    "a%b",
    "\n",
    "é",
    "日本",
    "a\u0301",
    "1",
    "🂡",
]
_NUMBERS = [0, 1, -1, 1.0, 1.5, -0.0, 1e300, 5e-324, 2**53, True, False, 10**17, 3]
_ODD = [
    None,
    [],
    ["a"],
    ["a", 1],
    [1.0, True],
    [""],
    {"x": 1},
    [["a"]],
    math.nan,
    math.inf,
    10**400,
    "x" * 40,
]


def documents(rng: random.Random) -> list[Document]:
    values = [*_STRINGS, *_NUMBERS, *_ODD]
    given = []
    for number in range(60):
        fields = rng.sample(_FIELDS, rng.randrange(5))
        metadata = {field: rng.choice(values) for field in fields}
        given.append(Document(f"d{number}'\"\\%{rng.choice(_STRINGS)}", "The cat sleeps.", metadata))
    return given


def condition(rng: random.Random) -> Filter:
    field = Field(rng.choice(["$id", *_FIELDS, *_FIELDS, *_FIELDS]))
    value = rng.choice([*_STRINGS, *_NUMBERS, "d1", "d1'"])
    operator = rng.choice(["$eq", "$in", "$contains", "$exists", "$gt", "$gte", "$lt", "$lte"])
    if operator == "$exists":
        return field.exists()
    if operator == "$in":
        return field.is_in(rng.sample([*_STRINGS, *_NUMBERS], rng.choice([0, 1, 3, 25])))
    if operator in ("$gt", "$gte", "$lt", "$lte") and isinstance(value, bool):
        value = 1
    return Condition(field.name, operator, value)  # type: ignore[arg-type]


def some_filter(rng: random.Random, depth: int = 3) -> Filter:
    kind = rng.randrange(5 if depth else 2)
    if kind < 2:
        found = condition(rng)
    else:
        parts = [some_filter(rng, depth - 1) for _ in range(rng.choice([1, 2, 3]))]
        found = parts[0]
        for part in parts[1:]:
            found = found & part if kind == 2 else found | part
    return ~found if rng.random() < 0.3 else found


def test_filters_find_the_documents_that_meet_them(location: Callable[[], str]) -> None:
    rng = random.Random(0)
    given = documents(rng)
    index = DatabaseIndex.build(given, HashEncoder(), location=location())
    everything = {candidate.doc_id for candidate in index.search("cat", 1_000)}
    assert everything == {document.id for document in given}
    for _ in range(150):
        wanted = some_filter(rng)
        expected = {document.id for document in given if wanted.matches(document)}
        found = {candidate.doc_id for candidate in index.search("cat", 1_000, filter=wanted)}
        assert found == expected, wanted.to_dict()


def test_the_deepest_and_the_longest_filters(location: Callable[[], str]) -> None:
    index = DatabaseIndex.build([Document("a", "The cat.", {"x": 1})], HashEncoder(), location=location())
    for start in (Field("x") == 1, Field("x") == 2):
        deep: Filter = start
        for number in range(48):
            deep = deep & (Field("x") > 0) if number % 2 else deep | (Field("y") == number)
        assert len(index.search("cat", filter=deep)) == int(deep.matches(Document("a", "", {"x": 1})))
    assert len(index.search("cat", filter=Field("x").is_in(range(3_000)))) == 1
    assert index.search("cat", filter=Field("x").is_in(range(2, 3_000))) == []


def scores(index: DatabaseIndex) -> dict[str, tuple[float, Mapping[str, float]]]:
    found = index.search("Which cat eats fish?", 100, filter={"tenant": "me"}, returns="sentence")
    return {candidate.id: (candidate.score, candidate.scores) for candidate in found}


def test_texts_that_a_filter_leaves_out_change_no_score(location: Callable[[], str]) -> None:
    """With matching statistics. With shared ones, words that others use are worth less, and that is all."""
    alone = DatabaseIndex.build(_MINE, HashEncoder(), location=location())
    together = location()
    index = DatabaseIndex(together, HashEncoder(), filter_statistics="matching")
    index.add([*_THEIRS, *_MINE])
    shared = DatabaseIndex(index.engine, HashEncoder(), filter_statistics="shared")
    for gone in ("mine2", "mine1"):
        expected, matching, others = scores(alone), scores(index), scores(shared)
        assert expected.keys() == matching.keys() == others.keys()
        for identifier, (score, parts) in expected.items():
            assert matching[identifier][0] == pytest.approx(score, rel=1e-4, abs=1e-5)
            assert matching[identifier][1] == pytest.approx(parts, rel=1e-4, abs=1e-5)
            assert others[identifier][1]["dense"] == pytest.approx(parts["dense"], rel=1e-4, abs=1e-5)
        assert max(parts["bm25"] for _, parts in others.values()) < max(
            parts["bm25"] for _, parts in expected.values()
        )
        for changed in (alone, index):
            changed.delete([gone])
            changed.add([Document("mine4", "A lion eats. The cat hides.", {"tenant": "me"})])


def test_the_index_of_lancedb_finds_what_meets_a_filter_far_from_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search reads one of eight partitions, in which nothing meets the filter, and then the others."""
    kinds = pytest.importorskip("lancedb.index")
    from precise_rag.index.databases.lance import LanceEngine

    monkeypatch.setattr("precise_rag.index.databases.lance.engine._INDEXED_FROM", 1)
    engine = LanceEngine(tmp_path / "rows.lance", nprobes=1)
    index = far_and_near(engine)
    index.optimize()  # which joins small partitions
    engine._open("rows").create_index("vector", config=kinds.IvfRq(distance_type="dot", num_partitions=8))
    check_far_is_found(index)


def test_the_index_of_postgres_finds_what_meets_a_filter_far_from_the_question(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index gives up after the nearest rows, none of which meets the filter."""
    monkeypatch.setattr("precise_rag.index.databases.postgres.engine._INDEXED_FROM", 1)
    monkeypatch.setattr("precise_rag.index.databases.postgres.view._COMPARED", 10)
    options = "options=-c%20hnsw.max_scan_tuples%3D1%20-c%20enable_sort%3Doff"
    index = far_and_near(f"{postgres}&collection=far&{options}")
    index.optimize()
    check_far_is_found(index)


def far_and_near(location: str | Engine) -> DatabaseIndex:
    """Documents around several directions, those of one of them with a field."""
    rng = np.random.default_rng(0)
    documents = [Document(f"d{i}", f"Number {i}.", {"kind": "far"} if i % 8 == 7 else {}) for i in range(900)]
    noise = 0.1 * rng.standard_normal((len(documents), 64)).astype(np.float32)
    vectors = {d.id: np.eye(64, dtype=np.float32)[i % 8] + noise[i] for i, d in enumerate(documents)}
    index = DatabaseIndex(location, HashEncoder(64), pool=20)
    index.add(documents, vectors=vectors)
    return index


def check_far_is_found(index: DatabaseIndex) -> None:
    vector = np.eye(64, dtype=np.float32)[0]
    found = index.search("zebra", 20, vector=vector, filter={"kind": "far"}, returns="sentence")
    assert len({candidate.doc_id for candidate in found}) == 20
    assert {candidate.metadata["kind"] for candidate in found} == {"far"}
