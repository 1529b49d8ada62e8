import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.llm.json_objects import json_objects


def test_objects_come_in_the_order_in_which_they_begin_also_in_and_before_a_broken_one() -> None:
    text = 'First {"a": {"b": 1}, "c": [{"d": 2}]} and then {"e": 3}.'
    assert list(json_objects(text)) == [{"a": {"b": 1}, "c": [{"d": 2}]}, {"b": 1}, {"d": 2}, {"e": 3}]
    assert list(json_objects('{"scores": [{"id": 1}, {"id": 2}, {"id":')) == [{"id": 1}, {"id": 2}]
    text = '{"x": [{"id": "}{"}, {"id": {"b": 2}}, {bad {"id": 3}], "y": {"id": 4}'
    assert list(json_objects(text)) == [{"id": "}{"}, {"id": {"b": 2}}, {"b": 2}, {"id": 3}, {"id": 4}]


def test_what_is_no_object_is_skipped_and_only_the_end_of_a_long_reply_read() -> None:
    for text in ("", "{", "{}}{", "[1, 2]", "{'a': 1}", '{"score": 1' + "0" * 9_000 + "}"):
        assert all(found == {} for found in json_objects(text))
    assert list(json_objects('{"a": 1} ' + "x" * 100_000 + ' {"b": 2}')) == [{"b": 2}]


@given(st.text(st.characters(exclude_characters="{}")), st.dictionaries(st.text(), st.integers()))
def test_an_object_is_found_in_any_prose(prose: str, value: dict[str, int]) -> None:
    assert list(json_objects(f"{prose}{json.dumps(value)}{prose}")) == [value]


@pytest.mark.parametrize("text", ['{"a":', '[{"a":[', '{"a":{"b":1},', '{"a":"\\"{', "{"])
def test_a_reply_of_braces_takes_no_long_time(text: str) -> None:
    assert all(found == {"b": 1} for found in json_objects(text * 300_000))
