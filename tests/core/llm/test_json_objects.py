import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.llm.json_objects import json_objects


def test_objects_come_in_the_order_in_which_they_begin() -> None:
    text = 'First {"a": {"b": 1}, "c": [{"d": 2}]} and then {"e": 3}.'
    assert list(json_objects(text)) == [
        {"a": {"b": 1}, "c": [{"d": 2}]},
        {"b": 1},
        {"d": 2},
        {"e": 3},
    ]


def test_complete_objects_inside_a_cut_off_one_are_found() -> None:
    assert list(json_objects('{"scores": [{"id": 1}, {"id": 2}, {"id":')) == [{"id": 1}, {"id": 2}]


def test_what_is_not_an_object_is_skipped() -> None:
    for text in ("", "{", "{}}{", "[1, 2]", "{'a': 1}", "{" * 3000, '{"a":' * 3000):
        assert all(found == {} for found in json_objects(text))


@given(st.text(st.characters(exclude_characters="{}")), st.dictionaries(st.text(), st.integers()))
def test_an_object_is_found_in_any_prose(prose: str, value: dict[str, int]) -> None:
    assert list(json_objects(f"{prose}{json.dumps(value)}{prose}")) == [value]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 100_000,
        '[{"a":[' * 50_000,
        '{"a":{"b":1},' * 50_000,
        '{"a":' * 900 + '"' + "x" * 300_000,
        '{"a":"' + '\\"{' * 100_000 + "\n",
        '{"a":[' + '"{",' * 100_000,
        "{" * 300_000,
    ],
    ids=range(7),
)
def test_replies_that_are_cut_off_at_many_levels_are_read_in_linear_time(text: str) -> None:
    assert all(found == {"b": 1} for found in json_objects(text))


def test_an_object_is_found_however_deep_it_is() -> None:
    deep = '{"a":' * 5_000 + '{"score": 7}' + "}" * 5_000
    assert {"score": 7} in list(json_objects(deep))
    assert list(json_objects(deep[:-4_000]))[-1:] == [{"score": 7}]


def test_complete_objects_before_an_error_are_found_in_order() -> None:
    text = '{"x": [{"id": "}{"}, {"id": {"b": 2}}, {bad {"id": 3}], "y": {"id": 4}'
    assert list(json_objects(text)) == [{"id": "}{"}, {"id": {"b": 2}}, {"b": 2}, {"id": 3}, {"id": 4}]


def test_numbers_of_any_length_are_read() -> None:
    assert list(json_objects('{"score": 1' + "0" * 9_000 + "}")) == [{"score": float("inf")}]
