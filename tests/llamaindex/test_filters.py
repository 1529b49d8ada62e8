"""LlamaIndex's metadata filters, as filters of the core and in retrievers."""

import pytest
from llama_index.core.schema import Document
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from llamaindex_precise import PreciseRetriever
from llamaindex_precise.filters import to_core_filter
from precise_rag.errors import InputError
from precise_rag.filters import as_filter
from precise_rag.testing import HashEncoder


def one(operator: FilterOperator, value, key="year"):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        (FilterOperator.EQ, 3, {"$eq": 3}),
        (FilterOperator.NE, 3, {"$ne": 3}),
        (FilterOperator.GTE, 3, {"$gte": 3}),
        (FilterOperator.IN, ["a", "b"], {"$in": ["a", "b"]}),
        (FilterOperator.NIN, ["a"], {"$nin": ["a"]}),
        (FilterOperator.CONTAINS, "a", {"$contains": "a"}),
        (FilterOperator.TEXT_MATCH, "a", {"$contains": "a"}),
        (FilterOperator.IS_EMPTY, None, {"$exists": False}),
    ],
)
def test_each_operator_has_its_own_in_the_core(operator, value, expected):
    assert to_core_filter(one(operator, value)) == as_filter({"$and": [{"year": expected}]})


def test_lists_and_conditions_nest():
    parts = [{"tags": {"$contains": "a"}}, {"tags": {"$contains": "b"}}]
    for operator, name in ((FilterOperator.ANY, "$or"), (FilterOperator.ALL, "$and")):
        found = to_core_filter(one(operator, ["a", "b"], "tags"))
        assert found == as_filter({"$and": [{name: parts}]})
    filters = [one(FilterOperator.GT, 3), MetadataFilter(key="who", value="me")]
    expected = {"$or": [{"$and": [{"year": {"$gt": 3}}]}, {"who": "me"}]}
    either = MetadataFilters(filters=filters, condition=FilterCondition.OR)
    assert to_core_filter(either) == as_filter(expected)
    neither = MetadataFilters(filters=filters, condition=FilterCondition.NOT)
    assert to_core_filter(neither) == as_filter({"$not": expected})


def test_a_retriever_keeps_to_its_filters():
    documents = [Document(text="The cat sleeps.", metadata={"who": who}, id_=who) for who in ("me", "you")]
    mine = MetadataFilters(filters=[MetadataFilter(key="who", value="me")])
    retriever = PreciseRetriever.from_documents(documents, HashEncoder(), filters=mine)
    assert {found.node.metadata["who"] for found in retriever.retrieve("cat")} == {"me"}


def test_filters_that_the_core_does_not_have_or_that_nest_too_deeply_are_refused():
    with pytest.raises(InputError, match="TEXT_MATCH_INSENSITIVE"):
        to_core_filter(one(FilterOperator.TEXT_MATCH_INSENSITIVE, "a"))
    nested = MetadataFilters(filters=[])
    for _ in range(5_000):
        nested = MetadataFilters(filters=[nested])
    with pytest.raises(InputError, match="nested"):
        to_core_filter(nested)
