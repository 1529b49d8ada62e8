"""A LlamaIndex application with each part of ours where it belongs; type checkers accept it.

    python examples/llamaindex_app.py

It needs no key: a model that repeats its prompt stands for yours.
"""

import asyncio

from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llamaindex_precise import (
    EvidencePostprocessor,
    GradientSelectionPostprocessor,
    PreciseEmbedding,
    PreciseRerankPostprocessor,
    PreciseRetriever,
    RedundancyPostprocessor,
    RelevanceFilterPostprocessor,
    SelfFeedbackQueryEngine,
    SemanticSegmentationNodeParser,
    SentenceContextNodeParser,
    prune_tool_results,
    read_facts,
)

DOCUMENTS = [
    Document(
        text="# Pump M-7\n\nThe pump stands in the yard.\n\n## Oil\n\nChange the oil every 400 hours.",
        doc_id="pump",
    ),
    Document(text="The town clock was built by Ada Brandt in 1911. It runs on a weight.", doc_id="clock"),
]
QUESTION = "How often is the oil of the pump changed?"


async def indexes() -> list[VectorStoreIndex]:
    """Indexes of nodes that end with the topic, and of sentences, with vectors that know their context."""
    parser = SemanticSegmentationNodeParser(chunk_size=300, include_prev_next_rel=False)
    in_context = SemanticSegmentationNodeParser(max_tokens=300, embed_model=PreciseEmbedding(), alpha=0.5)
    sentences = SentenceContextNodeParser.from_defaults(embed_model="all-MiniLM-L6-v2", passages=3)
    pipeline = IngestionPipeline(transformations=[parser, PreciseEmbedding()])
    nodes = await IngestionPipeline(transformations=[in_context]).arun(documents=DOCUMENTS)
    Settings.node_parser = parser
    return [
        VectorStoreIndex(pipeline.run(documents=DOCUMENTS)),
        VectorStoreIndex(nodes),
        VectorStoreIndex(sentences.get_nodes_from_documents(DOCUMENTS)),
        VectorStoreIndex.from_documents(DOCUMENTS, transformations=[parser]),
        VectorStoreIndex.from_documents(DOCUMENTS, embed_model=PreciseEmbedding(device="cpu")),
    ]


def postprocessors(llm: LLM) -> list[BaseNodePostprocessor]:
    return [
        PreciseRerankPostprocessor(reranker="packaged", top_n=10),
        RedundancyPostprocessor(similarity_threshold=0.9, embed_model=PreciseEmbedding()),
        RelevanceFilterPostprocessor(llm=llm, max_concurrency=2),
        GradientSelectionPostprocessor(min_k=2, ratio=0.4),
        EvidencePostprocessor(max_tokens=500),
    ]


def retrievers(index: VectorStoreIndex) -> list[BaseRetriever]:
    """Ours over documents, and over an index that there is."""
    pump = MetadataFilters(filters=[MetadataFilter(key="$id", value="pump")])
    return [
        PreciseRetriever.from_documents(DOCUMENTS, similarity_top_k=3, filters=pump),
        PreciseRetriever.from_store(index, fetch_k=30, max_tokens=500),
    ]


def shown(nodes: list[NodeWithScore]) -> str:
    return "\n\n".join(f"{read_facts(node)['score']:.2f} {node.text}" for node in nodes)


async def answers(index: VectorStoreIndex, retriever: BaseRetriever, llm: LLM) -> None:
    """Query and chat engines: LlamaIndex's with our parts, and ours, which judges what it answers."""
    stages = postprocessors(llm)
    print(index.as_query_engine(similarity_top_k=10, node_postprocessors=stages).query(QUESTION))
    print(RetrieverQueryEngine.from_args(retriever, node_postprocessors=stages[-1:]).query(QUESTION))
    chat = CondensePlusContextChatEngine.from_defaults(retriever, llm=llm, node_postprocessors=stages[-1:])
    print(await chat.achat(QUESTION))
    print(ContextChatEngine.from_defaults(retriever=retriever, llm=llm).chat(QUESTION))
    loop = SelfFeedbackQueryEngine(index.as_retriever(similarity_top_k=20), llm, max_tokens=400)
    response = await loop.aquery(QUESTION)
    print(response, shown(response.source_nodes))
    SelfFeedbackQueryEngine.from_documents(DOCUMENTS, llm).query(QUESTION)
    tool = QueryEngineTool.from_defaults(loop, name="pumps", description="Answers questions about pumps.")
    print([one.metadata.name for one in prune_tool_results([tool, read_manual], max_tokens=500)])


def read_manual(page: str) -> str:
    """Read a page of the manual."""
    return DOCUMENTS[0].text


def agent(llm: FunctionCallingLLM) -> FunctionAgent:
    return FunctionAgent(tools=prune_tool_results([read_manual]), llm=llm)


async def main() -> None:
    Settings.llm, Settings.embed_model = MockLLM(), PreciseEmbedding()
    built = await indexes()
    for index in built:
        found = index.as_retriever(similarity_top_k=5).retrieve(QUESTION)
        print(shown(EvidencePostprocessor().postprocess_nodes(found, query_str=QUESTION)))
    several = retrievers(built[0])
    for retriever in several:
        print(shown(await retriever.aretrieve(QUESTION)))
    await answers(built[0], several[1], Settings.llm)


if __name__ == "__main__":
    asyncio.run(main())
