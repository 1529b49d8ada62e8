import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever

from langchain_precise import PreciseRetriever
from langchain_precise.papers import HybridRetriever, SentenceContextRetriever
from precise_rag import (
    GradientSelector,
    RelevanceFilter,
)
from precise_rag.facts import piece_id, read_facts
from precise_rag.testing import HashEncoder
from support.alike import assert_alike

QUESTION = "Who built the town clock?"


async def test_k_and_options_of_the_search_are_set_once_or_for_one_call(documents, encoder):
    retriever = SentenceContextRetriever.from_documents(documents, encoder, k=2, alpha=0.5)
    assert len(retriever.invoke(QUESTION)) == 2
    assert len(retriever.invoke(QUESTION, k=1)) == len(await retriever.ainvoke(QUESTION, k=1)) == 1
    passage = documents[1].page_content.split("\n\n")[0]
    assert retriever.invoke(QUESTION, returns="passage")[0].page_content.strip() == passage
    assert retriever.invoke(QUESTION)[0].page_content.strip() != passage
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        SentenceContextRetriever.from_index(retriever.index, k=0)


def test_langchain_embeddings_serve_as_encoder(documents):
    retriever = SentenceContextRetriever.from_documents(documents, DeterministicFakeEmbedding(size=16))
    sentence = "The harbour of Velm freezes in January. "
    assert len(retriever.invoke(sentence, k=2)) == 2


def test_nameless_and_blank_documents_are_welcome(encoder):
    documents = [Document("One thing. Another thing."), Document(" "), Document("")]
    [first, second] = SentenceContextRetriever.from_documents(documents, encoder).invoke("thing")
    assert read_facts(first)["doc_id"] == read_facts(second)["doc_id"]


def test_it_is_a_retriever_with_tags_and_a_name_for_tracing(documents, encoder):
    index = SentenceContextRetriever.from_documents(documents, encoder).index
    retriever = SentenceContextRetriever.from_index(index, k=1, tags=["mine"])
    assert isinstance(retriever, BaseRetriever)

    async def started():
        return [
            event
            async for event in retriever.astream_events(QUESTION, version="v2")
            if event["event"] == "on_retriever_start"
        ]

    [event] = asyncio.run(started())
    assert event["name"] == "SentenceContextRetriever"
    assert event["tags"] == ["mine"]


def test_threads_agree(documents, encoder):
    retriever = SentenceContextRetriever.from_documents(documents, HashEncoder(), k=3)
    results = retriever.batch([QUESTION] * 20, {"max_concurrency": 8})
    assert_alike(results, [retriever.invoke(QUESTION)] * 20)


@pytest.fixture
def precise(documents, encoder):
    return PreciseRetriever.from_documents(documents, encoder, selector=GradientSelector(min_k=2))


def test_k_of_the_precise_retriever_is_kept_to(documents, encoder, precise):
    selection = precise.select(QUESTION)
    sentences = [piece_id(one.doc_id, one.start, one.end) for one in selection.kept]
    assert len(sentences) >= 2
    assert [d.id for d in precise.invoke(QUESTION, k=2)] == sentences[:2]
    assert len(sentences) <= len(precise.invoke(QUESTION, k=50)) <= len(selection.decisions)
    assert PreciseRetriever.from_index(precise.rag.index, k=1).invoke(QUESTION)[0].id == sentences[0]
    ranked = PreciseRetriever.from_index(precise.rag.index, selector=precise.rag.path.selector, order="score")
    assert [d.id for d in ranked.invoke(QUESTION)] == sentences


def test_filters_call_their_model_inside_the_retrieval(precise, scripted_chat):
    chat = scripted_chat(reply=lambda prompt: "no idea")
    watched = PreciseRetriever.from_index(precise.rag.index, relevance=RelevanceFilter(chat))

    async def events():
        return [e async for e in watched.astream_events(QUESTION, version="v2")]

    told = asyncio.run(events())
    names = {event["run_id"]: event["name"] for event in told}
    call = next(event for event in told if event["event"] == "on_chat_model_start")
    assert [names[parent] for parent in call["parent_ids"]] == ["PreciseRetriever", "PreciseRAG"]
    stages = [event["data"]["stage"] for event in told if event["name"] == "precise_rag_stage"]
    assert stages[0] == "search"
    assert {"rerank", "relevance"} <= set(stages)


@pytest.mark.parametrize("key", ["title", "Header 1", "header_path"])
def test_what_only_the_title_says_is_found(key):
    documents = [
        Document("Service it every two years. Change the seal then.", metadata={key: "Borealis M-7 pump"}),
        Document("Service it every month. Oil the shaft then.", metadata={key: "Austral K-2 pump"}),
    ]
    retriever = HybridRetriever.from_documents(documents, HashEncoder())
    found = retriever.invoke("How often should I service the Borealis M-7 pump?")[0]
    assert found.metadata[key] == "Borealis M-7 pump"
    assert found.page_content in documents[0].page_content
