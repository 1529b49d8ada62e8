"""The filter language: its plain form, its objects and what they match."""

import pickle
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.errors import InputError
from precise_rag.filters import Condition, Field, Filter, as_filter, parse_assignments
from precise_rag.filters.conditions import MAX_DEPTH
from precise_rag.types import Document
from support.documents import read_cases
from support.filtered import FIELDS, filtered_documents, random_filters


@given(random_filters, st.sampled_from(filtered_documents(60)))
def test_of_a_filter_and_its_opposite_one_is_met_at_most(wanted: Filter, document: Document) -> None:
    assert ~~wanted == wanted
    assert not (wanted.matches(document) and (~wanted).matches(document))
    whole = Document(document.id, "text", {**dict.fromkeys([*FIELDS, "tenant"], "xy"), "a": 1})
    assert wanted.matches(whole) != (~wanted).matches(whole), "no field is missing"


def test_objects_and_plain_form_are_the_same() -> None:
    wanted = (Field("year") >= 2020) & ~Field("tag").is_in(["x"]) | (Field("$id") != "b")
    plain = {"$or": [{"$and": [{"year": {"$gte": 2020}}, {"tag": {"$nin": ["x"]}}]}, {"$id": {"$ne": "b"}}]}
    assert as_filter(plain) == wanted
    assert hash(as_filter(plain)) == hash(wanted)
    with pytest.raises(InputError, match="values must be a list, got str"):
        Field("tenant").is_in("acme")
    assert as_filter({"a": True}) != as_filter({"a": 1.0}) == as_filter({"a": 1})


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        *read_cases("filters.json", "refused"),
        ({"a": float("nan")}, "finite"),
        ({"a": np.complex128(1)}, "must be a string, a number or a truth value"),
        ({"a": {"$gt": 10**5000}}, "finite"),
        ({3: 1}, "must be a non-empty string"),
    ],
)
def test_what_is_no_filter_is_refused(wanted: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_filter(wanted)


@pytest.mark.parametrize(
    "value", ["a\0b", ["a\0b"], float("nan"), 10**400, {"x": 1}, "a\ud800", np.complex128(1)]
)
def test_a_value_that_no_condition_can_have_is_there_and_equals_nothing(value: Any) -> None:
    document = Document("d", "", {"a": value})
    assert Field("a").exists().matches(document)
    assert (Field("a") != "a").matches(document)
    for wanted in (Field("a") == "a\ufffdb", Field("a").contains("a"), Field("a") > "", Field("a") > 0):
        assert not wanted.matches(document)


@pytest.mark.parametrize("is_asked", [False, True])
@pytest.mark.parametrize(
    ("plain", "other"),
    [
        ("a", StrEnum("Tenant", {"A": "a"})("a")),
        *((given, np.array([given])[0]) for given in ("a", 1, 1.5, True)),
    ],
)
def test_text_and_numbers_of_a_class_of_their_own_are_compared_as_such(
    plain: Any, other: Any, is_asked: bool
) -> None:
    there, asked = (plain, other) if is_asked else (other, plain)
    document = Document("d", "", {"a": there, "all": [there]})
    for wanted in (Field("a") == asked, Field("a").is_in([asked]), Field("all").contains(asked)):
        assert wanted.matches(document)
        assert not (~wanted).matches(document)
    assert type(Condition("a", "$eq", asked).value) is type(plain)


@pytest.mark.slow
def test_groups_that_are_nested_too_deeply_are_refused_and_a_long_chain_is_not_deep() -> None:
    chain: Filter = Field("a") == 0
    for number in range(3_000):
        chain = chain | (Field("a") == number)
    assert chain.matches(Document("d", "", {"a": 2_999}))
    wanted: Filter = Field("a") == 0
    for _ in range(MAX_DEPTH // 2):
        wanted = (wanted | (Field("b") == 1)) & (Field("c") == 2)
    assert pickle.loads(pickle.dumps(wanted)) == wanted
    with pytest.raises(InputError, match="nested more than"):
        wanted | (Field("b") == 1)
    plain: dict[str, Any] = {"a": 0}
    for _ in range(100_000):
        plain = {"$or": [plain]}
    with pytest.raises(InputError, match="nested more than"):
        as_filter(plain)


def test_assignments_of_the_command_line() -> None:
    for text in ("[" * 100_000, "NaN", "-1e999"):
        assert parse_assignments([f"a={text}"]) == Condition("a", "$in", (text,))
    given = ["year=2020", "tenant=acme", "tenant=b=c", '{"open": {"$ne": true}}', 'size={"$lt": 3}']
    objects = [{"open": {"$ne": True}}, {"size": {"$lt": 3}}]
    values = [{"year": {"$in": [2020, "2020"]}}, {"tenant": {"$in": ["acme", "b=c"]}}]
    assert parse_assignments(given) == as_filter({"$and": objects + values})
    assert parse_assignments([]) is None
    for text, said in (
        *((one, "filter") for one in ("year", "=3", "{")),
        ('{"tenant": "acme", "tenant": {"$exists": true}}', "the key 'tenant' occurs twice"),
    ):
        with pytest.raises(InputError, match=said):
            parse_assignments([text])
