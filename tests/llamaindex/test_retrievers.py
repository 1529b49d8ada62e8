"""What LlamaIndex asks of retrievers; what they find is in tests/adapters."""

import asyncio
import json

import pytest
from llama_index.core import Settings
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    Document,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
)

from llamaindex_precise import PreciseRetriever
from precise_rag.errors import InputError
from precise_rag.facts import FACTS_KEY
from precise_rag.testing import HashEncoder
from support.velm import PLAIN

QUESTION = "Who built the oven of river stone?"


def test_the_right_sentence_comes_first_with_its_place_and_metadata(documents):
    retriever = PreciseRetriever.from_documents(documents, HashEncoder(), similarity_top_k=3)
    found = retriever.retrieve(QUESTION)
    best = found[0].node
    assert best.text == "The oven was built from river stone by Tomas Reyk."
    assert best.text == documents[1].text[best.start_char_idx : best.end_char_idx]
    assert best.ref_doc_id == "bakery"
    assert best.relationships[NodeRelationship.SOURCE].metadata == {"title": "Bread"}
    assert best.get_content(MetadataMode.LLM) == f"title: Bread\n\n{best.text}"
    assert len(found) == 3
    assert all(json.loads(item.to_json()) for item in found)


def test_hidden_metadata_stays_hidden(documents):
    retriever = PreciseRetriever.from_documents(documents, HashEncoder())
    best = retriever.retrieve("Who was the last keeper, Ada Holm?")[0].node
    assert best.metadata["secret"] == "s3cret"
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert "s3cret" not in best.get_content(mode)
        assert FACTS_KEY not in best.get_content(mode)


def pumps(**options):
    """Two pages of which only the metadata say what they are about."""
    texts = {
        "m7": "Service it every two years. Change the seal then.",
        "k2": "Service it every month. Oil it.",
    }
    names = {"m7": "Borealis M-7 pump", "k2": "Austral K-2 pump"}
    return [
        Document(id_=key, text=text, metadata={"title": names[key], "pages": 3}, **options)
        for key, text in texts.items()
    ]


def test_titles_to_embed_take_part_in_the_search_and_others_do_not():
    def found(documents):
        retriever = PreciseRetriever.from_documents(documents, HashEncoder(), **PLAIN)
        nodes = retriever.retrieve("How often should I service the Borealis M-7 pump?")
        return [(item.node.source_node.node_id, item.score) for item in nodes]

    assert found(pumps())[0][0] == "m7"
    hidden = pumps(excluded_embed_metadata_keys=["title"])
    assert found(hidden) == found([Document(id_=d.id_, text=d.text) for d in hidden])


def test_nodes_of_a_parser_can_be_indexed_and_lead_to_their_document(documents):
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(documents)
    best = PreciseRetriever.from_documents(nodes, HashEncoder()).retrieve(QUESTION)[0].node
    assert best.ref_doc_id == "bakery"
    assert best.text == documents[1].text[best.start_char_idx : best.end_char_idx]


def test_the_application_s_embedding_is_the_default(documents, embedding):
    Settings.embed_model = embedding
    assert PreciseRetriever.from_documents(documents).rag.index.encoder.name == "hash-256"


async def test_a_query_may_bring_its_vector_or_other_texts_to_embed(documents):
    options = {"preset": "paretorag", "n_candidates": 1}
    retriever = PreciseRetriever.from_documents(documents, HashEncoder(), **options)
    plain = retriever.retrieve("river stone")[0]
    vector = HashEncoder().encode_queries(["river stone"])[0].tolist()
    for bundle in (
        QueryBundle("nothing alike", embedding=vector),
        QueryBundle("nothing alike", custom_embedding_strs=["river stone"]),
    ):
        for found in (retriever.retrieve(bundle), await retriever.aretrieve(bundle)):
            assert [item.node.node_id for item in found] == [plain.node.node_id]
            assert found[0].score == pytest.approx(plain.score, abs=1e-6)


def test_errors_of_the_core_say_what_to_do(documents):
    with pytest.raises(InputError, match="alpha"):
        PreciseRetriever.from_documents(documents, HashEncoder(), index_options={"alpha": 3})
    with pytest.raises(InputError, match="lighthouse"):
        PreciseRetriever.from_documents([documents[0], documents[0]], HashEncoder())


async def test_async_searches_run_within_their_span(documents):
    retriever = PreciseRetriever.from_documents(documents, HashEncoder())
    spans, dispatcher = SimpleSpanHandler(), get_dispatcher("llamaindex_precise.retrievers")
    dispatcher.add_span_handler(spans)
    try:
        await asyncio.gather(*(retriever.aretrieve(QUESTION) for _ in range(5)))
    finally:
        dispatcher.span_handlers.remove(spans)
    assert sum("._aretrieve-" in span.id_ for span in spans.completed_spans) == 5


def test_recursive_retrieval_from_objects(documents, monkeypatch):
    inner = PreciseRetriever.from_documents(documents[1:], HashEncoder(), similarity_top_k=1)
    outer = PreciseRetriever.from_documents(documents[:1], HashEncoder(), similarity_top_k=1)
    node = IndexNode(text="bread", index_id="bread", obj=inner)
    monkeypatch.setattr(outer, "_retrieve", lambda query_bundle: [NodeWithScore(node=node, score=1.0)])
    assert outer.retrieve(QUESTION)[0].node.ref_doc_id == "bakery"
