"""What LangChain asks of retrievers; what they find is in tests/adapters."""

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField

from langchain_precise import PreciseRetriever
from precise_rag import GradientSelector, InputError, PreciseRAG, RelevanceFilter
from precise_rag.facts import piece_id
from precise_rag.testing import HashEncoder
from support.documents import read_cases

QUESTION = "Who built the town clock?"


@pytest.fixture
def precise(documents):
    return PreciseRetriever.from_documents(documents, HashEncoder(), selector=GradientSelector(min_k=2))


async def test_k_is_set_once_or_for_one_call_and_kept_to(precise):
    selection = precise.select(QUESTION)
    sentences = [piece_id(one.doc_id, one.start, one.end) for one in selection.kept]
    assert len(sentences) >= 2
    assert [d.id for d in precise.invoke(QUESTION, k=2)] == sentences[:2]
    assert [d.id for d in await precise.ainvoke(QUESTION, k=2)] == sentences[:2]
    assert len(sentences) <= len(precise.invoke(QUESTION, k=50)) <= len(selection.decisions)
    index = precise.rag.index
    assert PreciseRetriever.from_index(index, k=2, search_kwargs={"k": 1}).k == 1, (
        "as configurable fields set it"
    )
    for given in ({"k": 1}, {"search_kwargs": {"k": 1}}):
        assert [d.id for d in PreciseRetriever.from_index(index, **given).invoke(QUESTION)] == sentences[:1]
        assert [d.id for d in precise.invoke(QUESTION, **given)] == sentences[:1]
    with pytest.raises(InputError, match="a call takes k, filter and search_kwargs, got returns"):
        precise.invoke(QUESTION, returns="x")
    ranked = PreciseRetriever.from_index(index, selector=precise.rag.path.selector, order="score")
    assert [d.id for d in ranked.invoke(QUESTION)] == sentences


def test_options_that_contradict_or_are_none_are_refused(precise):
    for given, message in read_cases("documents.json", "arguments that contradict"):
        with pytest.raises(InputError, match=message):
            PreciseRetriever(precise.rag, **given)
    with pytest.raises(InputError, match="search_kwargs must be a Mapping, got str"):
        precise.invoke(QUESTION, search_kwargs="k")
    with pytest.raises(InputError, match="nonsense"):
        PreciseRetriever.from_index(precise.rag.index, nonsense=1)


async def test_a_filter_is_a_configurable_field(documents):
    retriever = PreciseRetriever.from_documents(documents, HashEncoder())
    configurable = retriever.configurable_fields(search_kwargs=ConfigurableField("search_kwargs"))
    config = {"configurable": {"search_kwargs": {"filter": {"title": "bread"}}}}
    for found in (configurable.invoke("Velm", config), await configurable.ainvoke("Velm", config)):
        assert {document.metadata["title"] for document in found} == {"bread"}


async def test_no_call_widens_the_filter_of_a_retriever(documents):
    bread = {"filter": {"title": "bread"}}
    retriever = PreciseRetriever.from_documents(documents, HashEncoder(), search_kwargs=bread)
    later = PreciseRetriever(PreciseRAG(retriever.rag.index))
    later.search_kwargs |= bread
    configurable = retriever.configurable_fields(search_kwargs=ConfigurableField("search_kwargs"))
    for call in ({}, {"filter": {}}, {"search_kwargs": {"filter": None}}, {"search_kwargs": {"filter": {}}}):
        config = {"configurable": {"search_kwargs": call.get("search_kwargs", {})}}
        found = [retriever.invoke("Velm", **call), await later.ainvoke("Velm", **call)]
        for pieces in [*found, configurable.invoke("Velm", config)]:
            assert {document.metadata["title"] for document in pieces} == {"bread"}
    assert retriever.invoke("Velm", filter={"title": {"$ne": "bread"}}) == []


async def test_it_is_a_retriever_whose_model_calls_are_its_children(precise, scripted_chat):
    chat = scripted_chat(reply=lambda prompt: "no idea")
    watched = PreciseRetriever.from_index(precise.rag.index, relevance=RelevanceFilter(chat))
    assert isinstance(watched, BaseRetriever)
    told = [event async for event in watched.astream_events(QUESTION, {"tags": ["mine"]}, version="v2")]
    started = next(event for event in told if event["event"] == "on_retriever_start")
    assert (started["name"], started["tags"]) == ("PreciseRetriever", ["mine"])
    names = {event["run_id"]: event["name"] for event in told}
    call = next(event for event in told if event["event"] == "on_chat_model_start")
    assert [names[parent] for parent in call["parent_ids"]] == ["PreciseRetriever", "PreciseRAG"]
    stages = [dict(event["data"])["stage"] for event in told if event["name"] == "precise_rag_stage"]
    assert stages[0] == "search"
    assert {"rerank", "relevance"} <= set(stages)
