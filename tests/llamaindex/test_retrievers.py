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
from llamaindex_precise.papers import HybridRetriever, SentenceContextRetriever, WordSentenceRetriever
from precise_rag.errors import InputError
from precise_rag.index import load_index
from precise_rag.metadata_keys import FACTS_KEY
from precise_rag.testing import HashEncoder
from support.alike import assert_alike

RETRIEVERS = pytest.mark.parametrize(
    "cls", [SentenceContextRetriever, WordSentenceRetriever, HybridRetriever]
)
QUESTION = "Who built the oven of river stone?"


@RETRIEVERS
def test_the_right_sentence_comes_first_with_its_place_and_metadata(cls, documents):
    retriever = cls.from_documents(documents, HashEncoder(), similarity_top_k=3)
    found = retriever.retrieve(QUESTION)
    best = found[0].node

    assert "The oven was built from river stone by Tomas Reyk." in best.text
    assert best.text == documents[1].text[best.start_char_idx : best.end_char_idx]
    assert best.ref_doc_id == "bakery"
    assert best.relationships[NodeRelationship.SOURCE].metadata == {"title": "Bread"}
    assert best.metadata["title"] == "Bread"
    assert best.get_content(MetadataMode.LLM) == f"title: Bread\n\n{best.text}"
    assert 1 <= len(found) <= 3
    assert all(json.loads(item.to_json()) for item in found)


def test_hidden_metadata_stays_hidden(documents):
    retriever = SentenceContextRetriever.from_documents(documents, HashEncoder())
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
        Document(
            id_=key, text=text, metadata={"product": names[key], "tags": ["care"], "pages": 3}, **options
        )
        for key, text in texts.items()
    ]


def test_metadata_to_embed_take_part_in_the_search():
    retriever = HybridRetriever.from_documents(pumps(), HashEncoder())
    (found, *_) = retriever.retrieve("How often should I service the Borealis M-7 pump?")
    assert found.node.source_node.node_id == "m7"
    assert found.node.text in pumps()[0].text
    metadata = {key: value for key, value in found.node.metadata.items() if key != FACTS_KEY}
    assert metadata == pumps()[0].metadata


def test_metadata_that_are_not_to_be_embedded_take_no_part():
    hidden = pumps(excluded_embed_metadata_keys=["product", "tags"])
    bare = [Document(id_=d.id_, text=d.text) for d in hidden]
    query = "How often should I service the Borealis M-7 pump?"
    scores = [
        [(n.node.node_id, n.score) for n in HybridRetriever.from_documents(d, HashEncoder()).retrieve(query)]
        for d in (hidden, bare)
    ]
    assert scores[0] == scores[1]


def test_an_index_on_disk_serves_as_well(documents, tmp_path):
    built = HybridRetriever.from_documents(documents, HashEncoder(), similarity_top_k=2)
    built.index.save(tmp_path / "index")
    loaded = HybridRetriever.from_index(load_index(tmp_path / "index", HashEncoder()), similarity_top_k=2)
    assert_alike(loaded.retrieve(QUESTION), built.retrieve(QUESTION))


def test_nodes_of_a_parser_can_be_indexed_and_lead_to_their_document(documents):
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(documents)
    best = SentenceContextRetriever.from_documents(nodes, HashEncoder()).retrieve(QUESTION)[0].node
    assert best.ref_doc_id == "bakery"
    assert best.text == documents[1].text[best.start_char_idx : best.end_char_idx]


def test_the_application_s_embedding_is_the_default(documents, embedding):
    Settings.embed_model = embedding
    assert SentenceContextRetriever.from_documents(documents).index.encoder.name == "hash-256"


def test_a_query_may_bring_its_vector_or_other_texts_to_embed(documents):
    retriever = SentenceContextRetriever.from_documents(documents, HashEncoder(), similarity_top_k=1)
    plain = retriever.retrieve("river stone")[0]
    vector = HashEncoder().encode_queries(["river stone"])[0].tolist()
    by_vector = retriever.retrieve(QueryBundle("nothing alike", embedding=vector))[0]
    by_text = retriever.retrieve(QueryBundle("nothing alike", custom_embedding_strs=["river stone"]))[0]
    assert by_vector.node.node_id == by_text.node.node_id == plain.node.node_id
    assert by_vector.score == pytest.approx(plain.score, abs=1e-6)


async def test_the_whole_path_searches_for_the_vector_that_a_query_brings(documents):
    retriever = PreciseRetriever.from_documents(
        documents, HashEncoder(), reranker=None, evidence=None, selector=None, n_candidates=1
    )
    plain = retriever.retrieve("river stone")[0]
    bundles = [
        QueryBundle("nothing alike", embedding=HashEncoder().encode_queries(["river stone"])[0].tolist()),
        QueryBundle("nothing alike", custom_embedding_strs=["river stone"]),
    ]
    for bundle in bundles:
        for found in (retriever.retrieve(bundle), await retriever.aretrieve(bundle)):
            assert [item.node.node_id for item in found] == [plain.node.node_id]


def test_errors_of_the_core_say_what_to_do(documents):
    with pytest.raises(InputError, match="alpha"):
        SentenceContextRetriever.from_documents(documents, HashEncoder(), alpha=3)
    with pytest.raises(InputError, match="lighthouse"):
        SentenceContextRetriever.from_documents([documents[0], documents[0]], HashEncoder())


async def test_async_searches_run_within_their_span(documents):
    retriever = HybridRetriever.from_documents(documents, HashEncoder())
    spans = SimpleSpanHandler()
    dispatcher = get_dispatcher("llamaindex_precise.retrievers")
    dispatcher.add_span_handler(spans)
    try:
        await asyncio.gather(*(retriever.aretrieve(QUESTION) for _ in range(5)))
    finally:
        dispatcher.span_handlers.remove(spans)
    assert sum("._aretrieve-" in span.id_ for span in spans.completed_spans) == 5


def test_recursive_retrieval_from_objects(documents, monkeypatch):
    inner = SentenceContextRetriever.from_documents(documents[1:], HashEncoder(), similarity_top_k=1)
    outer = SentenceContextRetriever.from_documents(documents[:1], HashEncoder(), similarity_top_k=1)
    node = IndexNode(text="bread", index_id="bread", obj=inner)
    monkeypatch.setattr(outer, "_retrieve", lambda query_bundle: [NodeWithScore(node=node, score=1.0)])
    assert outer.retrieve(QUESTION)[0].node.ref_doc_id == "bakery"
