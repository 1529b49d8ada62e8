"""precise-rag components inside stock LangChain ones, and the other way round."""

import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_precise import (
    GradientSelectionCompressor,
    PreciseEmbeddings,
    PreciseRetriever,
    RedundancyCompressor,
    RerankCompressor,
    SelfFeedbackChain,
    SemanticSegmentationTextSplitter,
)
from precise_rag.facts import read_facts
from support.alike import assert_alike

QUESTION = "Who built the town clock?"


@pytest.fixture
def store(documents, encoder):
    store = InMemoryVectorStore(PreciseEmbeddings(encoder))
    store.add_documents(documents)
    return store


def test_a_stock_retriever_with_our_selection_in_lcel(store, scripted_chat):
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    chat = scripted_chat(reply=lambda prompt: prompt)
    found = RunnableParallel(query=RunnablePassthrough(), documents=store.as_retriever())
    context = (
        found | GradientSelectionCompressor(min_k=1) | (lambda ds: "\n".join(d.page_content for d in ds))
    )
    chain = {"context": context, "question": RunnablePassthrough()} | prompt | chat | StrOutputParser()

    answer = chain.invoke(QUESTION)

    assert "Ada Brandt in 1911" in answer
    assert "Rye bread" not in answer
    assert chain.batch([QUESTION] * 3) == [answer] * 3


async def test_a_contextual_compression_retriever(documents, encoder):
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    compressing = retrievers.ContextualCompressionRetriever(
        base_compressor=GradientSelectionCompressor(min_k=1),
        base_retriever=PreciseRetriever.from_documents(documents, encoder),
    )
    [best, *rest] = compressing.invoke(QUESTION)
    assert best.page_content.startswith("The town clock was built")
    assert read_facts(best)["score_scale"] == "probability"
    assert len(rest) < 9
    assert_alike(await compressing.ainvoke(QUESTION), [best, *rest])


async def test_a_document_compressor_pipeline(documents, encoder):
    compressors = pytest.importorskip("langchain_classic.retrievers.document_compressors")
    pipeline = compressors.DocumentCompressorPipeline(
        transformers=[
            RedundancyCompressor(),
            RerankCompressor(),
            GradientSelectionCompressor(reranker=None, min_k=1),
        ]
    )
    found = PreciseRetriever.from_documents(documents, encoder).invoke(QUESTION)
    kept = pipeline.compress_documents([*found, found[0]], QUESTION)
    assert kept[0].page_content.startswith("The town clock was built")
    assert len({d.id for d in kept}) == len(kept)
    assert_alike(await pipeline.acompress_documents([*found, found[0]], QUESTION), kept)


@pytest.mark.parametrize(
    "splitter",
    [
        SemanticSegmentationTextSplitter(max_tokens=16),
        RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0, add_start_index=True),
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_pieces_of_what_was_found_are_scored_anew(splitter, documents, encoder):
    compressors = pytest.importorskip("langchain_classic.retrievers.document_compressors")
    found = PreciseRetriever.from_documents(documents, encoder).invoke(QUESTION, k=2)
    whole = [Document(documents[1].page_content, id="clock", metadata=found[0].metadata)]
    pipeline = compressors.DocumentCompressorPipeline(
        transformers=[splitter, GradientSelectionCompressor(min_k=1)]
    )
    kept = pipeline.compress_documents(whole, QUESTION)
    assert "Ada Brandt" in kept[0].page_content
    scores = [read_facts(document)["score"] for document in kept]
    assert read_facts(found[0])["score"] not in scores[1:]
    assert all("passage" not in read_facts(document) for document in kept)


def test_an_ensemble_retriever(documents, encoder):
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    presets = ("paretorag", "recursive")
    ours = [PreciseRetriever.from_documents(documents, encoder, preset=preset) for preset in presets]
    ensemble = retrievers.EnsembleRetriever(retrievers=ours, weights=[0.5, 0.5])
    found = ensemble.invoke(QUESTION)
    assert found[0].page_content.startswith("The town clock was built")
    kept = GradientSelectionCompressor(min_k=1).compress_documents(found, QUESTION)
    assert kept[0].id == found[0].id


class State(TypedDict):
    query: str
    documents: Annotated[list[Document], lambda _, new: new]
    steps: Annotated[list[str], operator.add]


async def test_nodes_of_a_graph(documents, encoder):
    graphs = pytest.importorskip("langgraph.graph")
    retriever = PreciseRetriever.from_documents(documents, encoder)
    compressor = GradientSelectionCompressor(min_k=1).as_runnable()
    graph = graphs.StateGraph(State)
    graph.add_node("find", lambda state: {"documents": retriever.invoke(state["query"]), "steps": ["find"]})
    graph.add_node("select", RunnableParallel(documents=compressor, steps=lambda state: ["select"]))
    graph.add_edge(graphs.START, "find")
    graph.add_edge("find", "select")
    graph.add_edge("select", graphs.END)
    app = graph.compile()

    state = app.invoke({"query": QUESTION, "steps": []})

    assert state["steps"] == ["find", "select"]
    assert state["documents"][0].page_content.startswith("The town clock was built")
    again = await app.ainvoke({"query": QUESTION, "steps": []})
    assert_alike(again["documents"], state["documents"])


def test_a_chain_over_a_pipeline_of_ours(documents, encoder, scripted_chat):
    chat = scripted_chat(
        reply=lambda p: (
            '{"reason": "", "score": 9, "adjustment": 0}' if "You judge" in p else "Ada Brandt [1]."
        )
    )
    found = RunnableParallel(
        query=RunnablePassthrough(), documents=PreciseRetriever.from_documents(documents, encoder, k=20)
    )
    output = SelfFeedbackChain(retriever=found | RedundancyCompressor(), llm=chat).invoke(QUESTION)
    assert output["answer"] == "Ada Brandt [1]."
    assert read_facts(output["context"][0])["doc_id"] == "clock"
