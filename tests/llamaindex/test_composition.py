"""precise-rag components inside stock LlamaIndex ones; more is in the examples."""

from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.memory import ChatMemoryBuffer

from llamaindex_precise import (
    GradientSelectionPostprocessor,
    PreciseEmbedding,
    PreciseRetriever,
    SelfFeedbackQueryEngine,
    SemanticSegmentationNodeParser,
)
from llamaindex_precise.embeddings import resolve_encoder
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.alike import assert_alike
from support.frameworks import HashEmbedding
from support.velm import verdict

QUESTION = "Who built the oven of river stone?"


async def test_a_chat_engine_over_the_engine_also_streams(documents, scripted_chat):
    retriever = PreciseRetriever.from_documents(documents, HashEncoder(), similarity_top_k=6)
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


def test_the_application_s_settings(documents, scripted_chat, monkeypatch):
    reader = scripted_chat(reply=lambda prompt: "Tomas Reyk" if "by Tomas Reyk" in prompt else "unknown")
    monkeypatch.setattr(Settings, "_node_parser", None)
    monkeypatch.setattr(Settings, "_transformations", None)
    Settings.embed_model, Settings.llm = HashEmbedding(), reader
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


async def test_vectors_are_those_of_the_encoder():
    embedding, expected = HashEmbedding(), HashEncoder().encode(TEXTS).tolist()
    assert_alike(embedding.get_text_embedding_batch(TEXTS), expected)
    assert_alike(await embedding.aget_text_embedding_batch(TEXTS), expected)
    assert_alike(embedding.get_text_embedding(TEXTS[0]), expected[0])
    question = HashEncoder().encode_queries(["When does the ferry sail?"])[0].tolist()
    assert_alike(await embedding.aget_query_embedding("When does the ferry sail?"), question)


def test_the_encoder_of_a_component_is_the_given_one_then_that_of_the_settings():
    encoder, embedding = HashEncoder(64), HashEmbedding()
    assert resolve_encoder(encoder) is encoder
    assert resolve_encoder(embedding) is embedding.encoder
    Settings.embed_model = embedding
    assert resolve_encoder() is embedding.encoder
    assert resolve_encoder(name=embedding.encoder.name) is embedding.encoder
    named = resolve_encoder("local:all-MiniLM-L6-v2")
    assert PreciseEmbedding("all-MiniLM-L6-v2").encoder.name == named.name
    assert named.name == resolve_encoder("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
