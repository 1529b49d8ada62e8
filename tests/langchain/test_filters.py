"""Filters in LangChain's retrievers: as a field, for one call and as a configurable field."""

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField

from langchain_precise.papers import HybridRetriever
from precise_rag.errors import InputError
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from support.databases import ENGINES, new_location


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


@pytest.mark.parametrize("engine", ENGINES)
def test_a_retriever_over_a_database(engine, request, tmp_path):
    location = new_location(engine, request, tmp_path)()
    retriever = HybridRetriever.from_database(location, HashEncoder(), k=3)
    assert retriever.invoke("cat") == []
    documents = [
        Document(page_content="The cat sleeps.", metadata={"who": who}, id=who) for who in ("me", "you")
    ]
    retriever.add_documents(documents)
    assert owners(retriever.invoke("cat", filter={"who": "me"})) == {"me"}
    if ":memory:" not in location:
        options = {"search_kwargs": {"filter": {"who": "me"}}, "filter_statistics": "matching"}
        mine = HybridRetriever.from_database(location, HashEncoder(), **options)
        assert owners(mine.invoke("cat")) == {"me"}
        assert isinstance(mine.index, DatabaseIndex)
        assert mine.index.settings.filter_statistics == "matching"
        with pytest.raises(InputError, match="unexpected keyword argument 'filter_statistic'"):
            HybridRetriever.from_database(location, HashEncoder(), filter_statistic="matching")
    retriever.delete(["me"])
    assert owners(retriever.invoke("cat")) == {"you"}
