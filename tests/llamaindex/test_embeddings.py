from llama_index.core import Settings

from llamaindex_precise.embeddings import resolve_encoder
from precise_rag.testing import HashEncoder
from support.alike import assert_alike

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
