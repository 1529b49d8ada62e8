import asyncio
import copy
import threading

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever

from langchain_precise import PreciseRetriever
from langchain_precise.convert import to_core_documents
from langchain_precise.papers import HybridRetriever, SentenceContextRetriever, WordSentenceRetriever
from precise_rag import Document as CoreDocument
from precise_rag import (
    GradientSelector,
    HybridIndex,
    PreciseRAG,
    RelevanceFilter,
    SentenceContextIndex,
    WordSentenceIndex,
)
from precise_rag.errors import InputError
from precise_rag.excerpts import excerpts_of
from precise_rag.facts import piece_id, read_facts
from precise_rag.testing import HashEncoder
from support.alike import assert_alike

QUESTION = "Who built the town clock?"
KINDS = [
    (SentenceContextRetriever, SentenceContextIndex),
    (WordSentenceRetriever, WordSentenceIndex),
    (HybridRetriever, HybridIndex),
]

each_kind = pytest.mark.parametrize(("kind", "index_class"), KINDS, ids=lambda c: c.__name__)


@each_kind
def test_it_finds_what_the_index_finds(kind, index_class, documents, encoder):
    core = [CoreDocument(d.id, d.page_content, d.metadata) for d in documents]
    expected = index_class.build(core, encoder).search(QUESTION, 4)

    found = kind.from_documents(documents, encoder).invoke(QUESTION, k=4)

    assert found[0].page_content.startswith("The town clock was built by Ada Brandt")
    assert [d.id for d in found] == [piece_id(c.doc_id, c.start, c.end) for c in expected]
    assert_alike([read_facts(d)["score"] for d in found], [c.score for c in expected])
    assert [read_facts(d)["score_scale"] for d in found] == [c.score_scale for c in expected]


@each_kind
def test_results_point_to_their_source_and_leave_it_alone(kind, index_class, documents, encoder):
    before = copy.deepcopy(documents)
    sources = {d.id: d for d in documents}
    retriever = kind.from_documents(documents, encoder)
    for document in retriever.invoke(QUESTION):
        facts, metadata = read_facts(document), document.metadata
        source = sources[facts["doc_id"]]
        assert source.page_content[facts["start"] : facts["end"]] == document.page_content
        assert set(metadata) == {"title", "tags", "precise"}
        assert metadata["title"] == source.metadata["title"]
        assert type(facts["score"]) is float
        metadata["tags"].append("changed")
    assert documents == before
    assert all(len(d.metadata["tags"]) == 1 for d in retriever.invoke(QUESTION))


@each_kind
async def test_async_gives_the_same_and_leaves_the_loop_free(kind, index_class, documents, encoder):
    retriever = kind.from_documents(documents, encoder, k=3)
    threads = []
    search = retriever.index.search

    class Watched:
        def search(self, *args, **kwargs):
            threads.append(threading.current_thread())
            return search(*args, **kwargs)

    watched = kind.from_index(Watched(), k=3)
    expected = retriever.invoke(QUESTION)
    assert_alike(await watched.ainvoke(QUESTION), expected)
    assert len(await watched.ainvoke(QUESTION, k=1)) == 1
    assert threading.main_thread() not in threads
    assert_alike(await asyncio.gather(*(retriever.ainvoke(QUESTION) for _ in range(8))), [expected] * 8)


def test_k_is_set_at_construction_and_at_invocation(documents, encoder):
    retriever = SentenceContextRetriever.from_documents(documents, encoder, k=2, alpha=0.5)
    assert len(retriever.invoke(QUESTION)) == 2
    assert len(retriever.invoke(QUESTION, k=1)) == 1
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        SentenceContextRetriever.from_index(retriever.index, k=0)


def test_options_of_the_search_are_set_once_or_for_one_call(documents, encoder):
    retriever = SentenceContextRetriever.from_documents(
        documents, encoder, k=1, search_kwargs={"returns": "passage"}
    )
    passage = documents[1].page_content.split("\n\n")[0]
    assert retriever.invoke(QUESTION)[0].page_content.strip() == passage
    sentence = retriever.invoke(QUESTION, returns="sentence")[0].page_content.strip()
    assert passage.startswith(sentence)
    assert sentence.endswith("1911.")


def test_langchain_embeddings_serve_as_encoder(documents):
    retriever = SentenceContextRetriever.from_documents(documents, DeterministicFakeEmbedding(size=16))
    sentence = "The harbour of Velm freezes in January. "
    assert len(retriever.invoke(sentence, k=2)) == 2


def test_it_grows_and_shrinks(documents, encoder):
    retriever = SentenceContextRetriever.from_documents(documents[:1], encoder)
    assert retriever.add_documents(documents[1:]) == ["clock", "bread"]
    assert read_facts(retriever.invoke(QUESTION)[0])["doc_id"] == "clock"
    retriever.delete(["clock"])
    assert {read_facts(d)["doc_id"] for d in retriever.invoke(QUESTION)} == {"harbour", "bread"}


def test_nameless_and_blank_documents_are_welcome(encoder):
    documents = [Document("One thing. Another thing."), Document(" "), Document("")]
    [first, second] = SentenceContextRetriever.from_documents(documents, encoder).invoke("thing")
    assert read_facts(first)["doc_id"] == read_facts(second)["doc_id"]


@pytest.mark.parametrize(
    "kind", [HybridRetriever, SentenceContextRetriever, WordSentenceRetriever, PreciseRetriever]
)
async def test_an_empty_collection_gives_no_results(kind, encoder):
    for retriever in (kind.from_documents([], encoder), kind.from_documents([Document(" ")], encoder)):
        assert retriever.invoke(QUESTION) == await retriever.ainvoke(QUESTION) == []


@pytest.mark.parametrize("query", ["", " ", None, 5, b"x", ["a"]])
@pytest.mark.parametrize("kind", [HybridRetriever, PreciseRetriever])
def test_a_query_must_be_text(kind, query, documents, encoder):
    with pytest.raises(InputError, match="the query must"):
        kind.from_documents(documents, encoder).invoke(query)


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


def test_the_precise_retriever_finds_what_the_pipeline_selects(documents, encoder, precise):
    rag = PreciseRAG.from_documents(
        to_core_documents(documents), encoder=encoder, selector=GradientSelector(min_k=2)
    )
    selection = rag.retrieve(QUESTION)
    found = precise.invoke(QUESTION)
    excerpts = excerpts_of(selection)
    assert [d.id for d in found] == [piece_id(one.doc_id, one.start, one.end) for one in excerpts]
    assert_alike([read_facts(d)["score"] for d in found], [one.score for one in excerpts])
    assert [read_facts(d)["reason"] for d in found] == [one.reason for one in excerpts]
    assert found[0].page_content.startswith("The town clock was built by Ada Brandt")
    assert_alike(precise.select(QUESTION), selection)


def test_k_of_the_precise_retriever_is_kept_to(documents, encoder, precise):
    selection = precise.select(QUESTION)
    sentences = [piece_id(one.doc_id, one.start, one.end) for one in selection.kept]
    assert len(sentences) >= 2
    assert [d.id for d in precise.invoke(QUESTION, k=2)] == sentences[:2]
    assert len(sentences) <= len(precise.invoke(QUESTION, k=50)) <= len(selection.decisions)
    assert PreciseRetriever.from_index(precise.rag.index, k=1).invoke(QUESTION)[0].id == sentences[0]
    ranked = PreciseRetriever.from_index(precise.rag.index, selector=precise.rag.path.selector, order="score")
    assert [d.id for d in ranked.invoke(QUESTION)] == sentences


async def test_the_precise_retriever_gives_the_same_when_async_and_changes_nothing(documents, precise):
    before = copy.deepcopy(documents)
    assert_alike(await precise.ainvoke(QUESTION), precise.invoke(QUESTION))
    precise.invoke(QUESTION)[0].metadata["tags"].append("changed")
    assert documents == before
    assert "changed" not in precise.invoke(QUESTION)[0].metadata["tags"]


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
