"""precise-rag components inside stock LlamaIndex ones; more is in the examples."""

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import IndexNode, NodeWithScore

from llamaindex_precise import (
    GradientSelectionPostprocessor,
    PreciseRetriever,
    SelfFeedbackQueryEngine,
    SemanticSegmentationNodeParser,
)
from llamaindex_precise.embeddings import resolve_encoder
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.alike import assert_alike
from support.velm import verdict

QUESTION = "Who built the oven of river stone?"


@pytest.fixture
def retriever(documents) -> PreciseRetriever:
    return PreciseRetriever.from_documents(documents, HashEncoder(), similarity_top_k=6)


@pytest.fixture
def reader(scripted_chat):
    """A model that answers from its context alone."""
    return scripted_chat(reply=lambda prompt: "Tomas Reyk" if "by Tomas Reyk" in prompt else "unknown")


@pytest.mark.parametrize("mode", list(FUSION_MODES))
async def test_a_fusion_of_retrievers_knows_one_node_that_both_find(documents, reader, mode):
    both = [
        PreciseRetriever.from_documents(documents, HashEncoder(), preset=preset)
        for preset in ("paretorag", "recursive")
    ]
    options = {"num_queries": 1, "similarity_top_k": 5, "use_async": False}
    fusion = QueryFusionRetriever(both, llm=reader, mode=mode, **options)
    found = fusion.retrieve(QUESTION)
    assert found[0].node.text == "The oven was built from river stone by Tomas Reyk."
    if mode == FUSION_MODES.RECIPROCAL_RANK:
        assert found[0].score == pytest.approx(1 / 60 + 1 / 60)  # first for both: one node, not two
    assert len({item.node.node_id for item in found}) == len(found)
    kept = GradientSelectionPostprocessor(min_k=1).postprocess_nodes(found, query_str=QUESTION)
    assert read_facts(kept[0].node)["score_scale"] == "probability"


def test_recursive_retrieval_from_objects(documents, monkeypatch):
    inner = PreciseRetriever.from_documents(documents[1:], HashEncoder(), similarity_top_k=1)
    outer = PreciseRetriever.from_documents(documents[:1], HashEncoder(), similarity_top_k=1)
    node = IndexNode(text="bread", index_id="bread", obj=inner)
    monkeypatch.setattr(outer, "_retrieve", lambda query_bundle: [NodeWithScore(node=node, score=1.0)])
    assert outer.retrieve(QUESTION)[0].node.ref_doc_id == "bakery"


async def test_a_chat_engine_over_the_engine_also_streams(retriever, scripted_chat):
    llm = ScriptedLLM(["Tomas Reyk did.", verdict(9)] * 4)
    chat = CondenseQuestionChatEngine.from_defaults(
        SelfFeedbackQueryEngine(retriever, llm, streaming=True),
        memory=ChatMemoryBuffer.from_defaults(),
        llm=scripted_chat(reply=lambda prompt: QUESTION),
    )
    first = chat.stream_chat(QUESTION)
    assert "".join(first.response_gen) == "Tomas Reyk did."
    assert first.source_nodes
    assert str(chat.chat("And who was that?")) == "Tomas Reyk did."
    second = await chat.astream_chat("Really?")
    assert "".join([piece async for piece in second.async_response_gen()]) == "Tomas Reyk did."


def test_the_application_s_settings(documents, embedding, reader, monkeypatch):
    monkeypatch.setattr(Settings, "_node_parser", None)
    monkeypatch.setattr(Settings, "_transformations", None)
    Settings.embed_model, Settings.llm = embedding, reader
    Settings.node_parser = SemanticSegmentationNodeParser(max_tokens=20)
    assert PreciseRetriever.from_documents(documents).rag.index.encoder.name == "hash-256"
    index = VectorStoreIndex.from_documents(documents)
    parts = [GradientSelectionPostprocessor()]
    response = index.as_query_engine(similarity_top_k=5, node_postprocessors=parts).query(QUESTION)
    assert str(response) == "Tomas Reyk"
    assert "s3cret" not in reader.prompts[-1]
    assert "score_scale" not in reader.prompts[-1]
    best = response.source_nodes[0].node
    assert best.text == documents[1].text[best.start_char_idx : best.end_char_idx]


TEXTS = ["The ferry sails at nine.", "Rye bread is baked twice."]


async def test_vectors_are_those_of_the_encoder(embedding):
    expected = HashEncoder().encode(TEXTS).tolist()
    assert_alike(embedding.get_text_embedding_batch(TEXTS), expected)
    assert_alike(await embedding.aget_text_embedding_batch(TEXTS), expected)
    assert_alike(embedding.get_text_embedding(TEXTS[0]), expected[0])
    question = HashEncoder().encode_queries(["When does the ferry sail?"])[0].tolist()
    assert_alike(await embedding.aget_query_embedding("When does the ferry sail?"), question)


def test_the_encoder_of_a_component_is_the_given_one_then_that_of_the_settings(embedding):
    encoder = HashEncoder(64)
    assert resolve_encoder(encoder) is encoder
    assert resolve_encoder(embedding) is embedding.encoder
    Settings.embed_model = embedding
    assert resolve_encoder() is embedding.encoder
    assert resolve_encoder(name=embedding.encoder.name) is embedding.encoder
    named = resolve_encoder("local:all-MiniLM-L6-v2")
    assert named.name == resolve_encoder("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
