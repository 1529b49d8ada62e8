"""Filters in LangChain's retrievers: as a field, for one call and as a configurable field."""

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField

from langchain_precise.papers import HybridRetriever
from precise_rag.errors import InputError
from precise_rag.testing import HashEncoder


@pytest.fixture
def retriever():
    documents = [
        Document(page_content="The cat sleeps.", metadata={"who": who, "year": year}, id=who)
        for who, year in (("me", 2019), ("you", 2021), ("them", 2024))
    ]
    return HybridRetriever.from_documents(documents, HashEncoder())


def owners(found):
    return {document.metadata["who"] for document in found}


def test_a_filter_for_all_calls_and_for_one(retriever):
    assert owners(retriever.invoke("cat", filter={"year": {"$gte": 2020}})) == {"you", "them"}
    retriever.search_kwargs = {"filter": {"who": {"$in": ["me", "you"]}}}
    assert owners(retriever.invoke("cat")) == {"me", "you"}
    assert owners(retriever.invoke("cat", filter={"$and": [{"who": "me"}, {"year": 2019}]})) == {"me"}


async def test_a_filter_as_a_configurable_field(retriever):
    configurable = retriever.configurable_fields(search_kwargs=ConfigurableField("search_kwargs"))
    config = {"configurable": {"search_kwargs": {"filter": {"who": "them"}}}}
    assert owners(configurable.invoke("cat", config)) == {"them"}
    assert owners(await configurable.ainvoke("cat", config)) == {"them"}


def test_a_filter_that_is_not_valid_raises(retriever):
    with pytest.raises(InputError, match="unknown operator"):
        retriever.invoke("cat", filter={"year": {"$near": 3}})
