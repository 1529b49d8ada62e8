"""precise-rag components inside stock LlamaIndex ones."""

import json

import pytest
from llama_index.core import Settings, SummaryIndex, VectorStoreIndex
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import QueryFusionRetriever, RouterRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool, RetrieverTool

from llamaindex_precise import (
    GradientSelectionPostprocessor,
    PreciseRerankPostprocessor,
    PreciseRetriever,
    RedundancyPostprocessor,
    SelfFeedbackQueryEngine,
    SemanticSegmentationNodeParser,
)
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder, ScriptedLLM

QUESTION = "Who built the oven of river stone?"


@pytest.fixture
def retriever(documents) -> PreciseRetriever:
    return PreciseRetriever.from_documents(documents, HashEncoder(), similarity_top_k=6)


@pytest.fixture
def reader(scripted_chat):
    """A model that answers from its context alone."""
    return scripted_chat(reply=lambda prompt: "Tomas Reyk" if "by Tomas Reyk" in prompt else "unknown")


async def test_retriever_query_engine(retriever, reader):
    engine = RetrieverQueryEngine.from_args(
        retriever,
        llm=reader,
        node_postprocessors=[
            PreciseRerankPostprocessor(),
            RedundancyPostprocessor(),
            GradientSelectionPostprocessor(max_k=2),
        ],
    )
    response = engine.query(QUESTION)
    assert str(response) == "Tomas Reyk"
    assert response.source_nodes[0].node.ref_doc_id == "bakery"
    assert 1 <= len(response.source_nodes) <= 2
    assert "s3cret" not in reader.prompts[-1]
    assert "score_scale" not in reader.prompts[-1]
    again = await engine.aquery(QUESTION)
    assert [i.node.node_id for i in again.source_nodes] == [i.node.node_id for i in response.source_nodes]


def test_query_engine_with_stock_streaming(retriever, reader):
    engine = RetrieverQueryEngine.from_args(
        retriever,
        llm=reader,
        streaming=True,
        node_postprocessors=[GradientSelectionPostprocessor()],
    )
    assert "".join(engine.query(QUESTION).response_gen) == "Tomas Reyk"


def test_a_vector_index_of_others_with_our_postprocessors(documents, embedding, reader):
    index = VectorStoreIndex.from_documents(
        documents, transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0)], embed_model=embedding
    )
    engine = index.as_query_engine(
        llm=reader, similarity_top_k=5, node_postprocessors=[GradientSelectionPostprocessor(min_k=1)]
    )
    response = engine.query(QUESTION)
    assert str(response) == "Tomas Reyk"
    assert 1 <= len(response.source_nodes) <= 5


@pytest.mark.parametrize("mode", list(FUSION_MODES))
async def test_query_fusion(documents, reader, mode):
    fusion = QueryFusionRetriever(
        [
            PreciseRetriever.from_documents(documents, HashEncoder(), preset="paretorag"),
            PreciseRetriever.from_documents(documents, HashEncoder(), preset="recursive"),
        ],
        llm=reader,
        mode=mode,
        num_queries=1,
        similarity_top_k=5,
        use_async=False,
    )
    found = fusion.retrieve(QUESTION)
    assert found[0].node.text == "The oven was built from river stone by Tomas Reyk."
    if mode == FUSION_MODES.RECIPROCAL_RANK:
        assert found[0].score == pytest.approx(1 / 60 + 1 / 60)  # first for both: one node, not two
    assert len({item.node.node_id for item in found}) == len(found)
    again = await fusion.aretrieve(QUESTION)
    assert [item.node.node_id for item in again] == [item.node.node_id for item in found]
    kept = GradientSelectionPostprocessor(min_k=1).postprocess_nodes(found, query_str=QUESTION)
    assert read_facts(kept[0].node)["score_scale"] == "probability"


def test_router_query_engine(retriever, documents, scripted_chat):
    feedback = SelfFeedbackQueryEngine(
        retriever, ScriptedLLM(["Tomas Reyk.", '{"reason": "r", "score": 9, "adjustment": 0}'])
    )
    summary = SummaryIndex.from_documents(documents).as_query_engine(llm=scripted_chat(reply=lambda p: "?"))
    router = RouterQueryEngine.from_defaults(
        [
            QueryEngineTool.from_defaults(summary, description="summaries"),
            QueryEngineTool.from_defaults(feedback, description="single facts"),
        ],
        selector=LLMSingleSelector.from_defaults(
            llm=scripted_chat(reply=lambda prompt: '[{"choice": 2, "reason": "a fact"}]')
        ),
        llm=scripted_chat(reply=lambda prompt: "?"),
    )
    response = router.query(QUESTION)
    assert str(response) == "Tomas Reyk."
    assert response.metadata["precise"]["score"] == 9


def test_router_retriever(retriever, documents, scripted_chat):
    other = PreciseRetriever.from_documents(documents[:1], HashEncoder())
    router = RouterRetriever.from_defaults(
        [
            RetrieverTool.from_defaults(other, description="lighthouses"),
            RetrieverTool.from_defaults(retriever, description="the town"),
        ],
        selector=LLMSingleSelector.from_defaults(
            llm=scripted_chat(reply=lambda prompt: '[{"choice": 2, "reason": "town"}]')
        ),
        llm=scripted_chat(reply=lambda prompt: "?"),
    )
    assert router.retrieve(QUESTION)[0].node.ref_doc_id == "bakery"


def test_hyde(retriever, reader, scripted_chat):
    hyde = HyDEQueryTransform(llm=scripted_chat(reply=lambda prompt: "Tomas Reyk built it of river stone."))
    engine = TransformQueryEngine(RetrieverQueryEngine.from_args(retriever, llm=reader), hyde)
    assert str(engine.query("Whose work was it?")) == "Tomas Reyk"


def test_sub_questions(retriever, reader, scripted_chat):
    plan = json.dumps({"items": [{"sub_question": QUESTION, "tool_name": "town"}]})
    engine = SubQuestionQueryEngine.from_defaults(
        [
            QueryEngineTool.from_defaults(
                RetrieverQueryEngine.from_args(retriever, llm=reader), name="town", description="the town"
            )
        ],
        llm=scripted_chat(reply=lambda prompt: "Tomas Reyk" if "Tomas Reyk" in prompt else "?"),
        question_gen=LLMQuestionGenerator.from_defaults(llm=scripted_chat(reply=lambda prompt: plan)),
        use_async=False,
        verbose=False,
    )
    assert str(engine.query(QUESTION)) == "Tomas Reyk"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own workflows
async def test_an_agent_with_the_engine_as_its_tool(retriever, scripted_chat):
    engine = SelfFeedbackQueryEngine(
        retriever, ScriptedLLM(["Tomas Reyk.", '{"reason": "r", "score": 9, "adjustment": 0}'])
    )

    def think(prompt: str) -> str:
        if "Observation: Tomas Reyk." in prompt:
            return "Thought: I can answer now.\nAnswer: It was Tomas Reyk."
        action = json.dumps({"input": QUESTION})
        return f"Thought: I need the town's history.\nAction: town\nAction Input: {action}"

    tool = QueryEngineTool.from_defaults(engine, name="town", description="Knows the town.")
    agent = ReActAgent(tools=[tool], llm=scripted_chat(reply=think), streaming=False)
    reply = await agent.run(QUESTION, memory=ChatMemoryBuffer.from_defaults())
    assert str(reply) == "It was Tomas Reyk."


def test_the_application_s_settings(documents, embedding, reader, monkeypatch):
    monkeypatch.setattr(Settings, "_node_parser", None)
    monkeypatch.setattr(Settings, "_transformations", None)
    Settings.embed_model, Settings.llm = embedding, reader
    Settings.node_parser = SemanticSegmentationNodeParser(max_tokens=20)
    index = VectorStoreIndex.from_documents(documents)
    response = index.as_query_engine(
        similarity_top_k=5, node_postprocessors=[GradientSelectionPostprocessor()]
    ).query(QUESTION)
    assert str(response) == "Tomas Reyk"
    best = response.source_nodes[0].node
    assert best.text == documents[1].text[best.start_char_idx : best.end_char_idx]
