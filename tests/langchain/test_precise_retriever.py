import asyncio
import copy

import pytest

from langchain_precise import PreciseRetriever
from langchain_precise.convert import to_core_documents
from precise_rag import PreciseRAG, RelevanceFilter
from precise_rag.selection import GradientSelector

QUESTION = "Who built the town clock?"


@pytest.fixture
def retriever(documents, encoder):
    return PreciseRetriever.from_documents(documents, encoder, selector=GradientSelector(min_k=2))


def test_it_finds_what_the_pipeline_selects(documents, encoder, retriever):
    rag = PreciseRAG.from_documents(
        to_core_documents(documents), encoder=encoder, selector=GradientSelector(min_k=2)
    )
    selection = rag.retrieve(QUESTION)
    found = retriever.invoke(QUESTION)
    kept = [decision for decision in selection.decisions if decision.kept]
    assert [d.id for d in found] == [decision.candidate.id for decision in kept]
    assert [d.metadata["relevance_score"] for d in found] == [d.candidate.score for d in kept]
    assert [d.metadata["precise_rag"]["reason"] for d in found] == [d.reason for d in kept]
    assert found[0].page_content.startswith("The town clock was built by Ada Brandt")
    assert retriever.select(QUESTION) == selection


def test_k_is_an_upper_bound(documents, encoder, retriever):
    everything = retriever.invoke(QUESTION)
    assert len(everything) >= 2
    assert retriever.invoke(QUESTION, k=1) == everything[:1]
    assert PreciseRetriever.from_index(retriever.rag.index, k=1).invoke(QUESTION)[0].id == everything[0].id


async def test_async_gives_the_same_and_nothing_is_changed(documents, retriever):
    before = copy.deepcopy(documents)
    assert await retriever.ainvoke(QUESTION) == retriever.invoke(QUESTION)
    retriever.invoke(QUESTION)[0].metadata["tags"].append("changed")
    assert documents == before
    assert "changed" not in retriever.invoke(QUESTION)[0].metadata["tags"]


def test_filters_call_their_model_inside_the_retrieval(retriever, scripted_chat):
    chat = scripted_chat(script=lambda prompt: "no idea")
    watched = PreciseRetriever.from_index(retriever.rag.index, relevance=RelevanceFilter(chat))

    async def events():
        return [e async for e in watched.astream_events(QUESTION, version="v2")]

    told = asyncio.run(events())
    names = {event["run_id"]: event["name"] for event in told}
    call = next(event for event in told if event["event"] == "on_chat_model_start")
    assert [names[parent] for parent in call["parent_ids"]] == ["PreciseRetriever", "PreciseRAG"]
    stages = [event["data"]["stage"] for event in told if event["name"] == "precise_rag_stage"]
    assert stages[0] == "search"
    assert {"rerank", "relevance"} <= set(stages)
