import json

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
