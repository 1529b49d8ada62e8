"""Every database means the same by a filter as the filter itself does."""

import math
import random
from collections.abc import Callable

from precise_rag.filters import Condition, Field, Filter
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

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
