"""The node parsers in stock ingestion: pipelines, caches, docstores, worker processes, vector stores."""

import asyncio

import pytest
from llama_index.core import SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionCache, IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.schema import Document, MetadataMode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from llamaindex_precise import SemanticSegmentationNodeParser
from llamaindex_precise.embeddings import resolve_encoder
from llamaindex_precise.papers import (
    GreedySemanticNodeParser,
    SentenceContextNodeParser,
    SentenceContextRetriever,
)
from precise_rag import Document as CoreDocument
from precise_rag import Segmenter
from precise_rag.index import DenseIndex
from precise_rag.testing import HashEncoder
from support.alike import assert_alike

QUESTION = "Who built the oven of river stone?"


def places(nodes):
    return [(node.ref_doc_id, node.start_char_idx, node.end_char_idx, node.text) for node in nodes]


def test_a_pipeline_with_a_cache_gives_the_same_nodes_again(documents, tmp_path):
    def pipeline(**settings):
        return IngestionPipeline(transformations=[SemanticSegmentationNodeParser(**settings)])

    first = pipeline(max_tokens=30)
    nodes = first.run(documents=documents)
    first.cache.persist(str(tmp_path / "cache.json"))
    second = pipeline(max_tokens=30)
    second.cache = IngestionCache.from_persist_path(str(tmp_path / "cache.json"))
    again = second.run(documents=documents)
    assert [node.node_id for node in again] == [node.node_id for node in nodes]
    assert places(again) == places(nodes)


def test_the_cache_key_follows_whatever_changes_the_nodes(documents, embedding, monkeypatch):
    def key(parser):
        return get_transformation_hash(documents, parser)

    parser = SemanticSegmentationNodeParser()
    assert key(parser) == key(SemanticSegmentationNodeParser())
    others = [
        SemanticSegmentationNodeParser(max_tokens=30),
        SemanticSegmentationNodeParser(sentence_splitter="sentencex"),
        GreedySemanticNodeParser(embed_model=HashEncoder()),
        GreedySemanticNodeParser(embed_model=HashEncoder(64)),
        SentenceContextNodeParser(embed_model=HashEncoder()),
        SentenceContextNodeParser(embed_model=HashEncoder(), alpha=0.8),
    ]
    retrained = SemanticSegmentationNodeParser()
    retrained.weights_sha256 = "0" * 64
    upgraded = SemanticSegmentationNodeParser()
    upgraded.core_version = "99.0"
    keys = [key(transformation) for transformation in (parser, *others, retrained, upgraded)]
    assert len(set(keys)) == len(keys)


@pytest.mark.slow
def test_worker_processes_give_the_same_nodes(documents):
    parser = SemanticSegmentationNodeParser(max_tokens=30)
    pipeline = IngestionPipeline(transformations=[parser], disable_cache=True)
    nodes = pipeline.run(documents=documents, num_workers=2)
    assert places(nodes) == places(parser.get_nodes_from_documents(documents))


async def test_the_async_pipeline_does_the_same(documents):
    parser = SemanticSegmentationNodeParser(max_tokens=30)
    nodes = await IngestionPipeline(transformations=[parser]).arun(documents=documents)
    assert places(nodes) == places(parser.get_nodes_from_documents(documents))


def test_a_docstore_sees_changed_documents_only(documents):
    store = SimpleVectorStore()
    pipeline = IngestionPipeline(
        transformations=[SentenceContextNodeParser(embed_model=HashEncoder())],
        docstore=SimpleDocumentStore(),
        vector_store=store,
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    assert {node.ref_doc_id for node in pipeline.run(documents=documents)} == {"lighthouse", "bakery"}
    assert pipeline.run(documents=documents) == []
    changed = Document(doc_id="bakery", text="The bakery has closed.", metadata={"title": "Bread"})
    assert places(pipeline.run(documents=[documents[0], changed])) == [
        ("bakery", 0, 22, "The bakery has closed.")
    ]
    assert sorted(store.data.text_id_to_ref_doc_id.values()).count("bakery") == 1


def test_a_folder_of_files(tmp_path, documents):
    for document in documents:
        (tmp_path / f"{document.doc_id}.txt").write_text(document.text)
    read = SimpleDirectoryReader(str(tmp_path), filename_as_id=True).load_data()
    nodes = SemanticSegmentationNodeParser(max_tokens=30).get_nodes_from_documents(read)
    assert {node.metadata["file_name"] for node in nodes} == {"lighthouse.txt", "bakery.txt"}
    assert all("file_size" not in node.get_content(MetadataMode.LLM) for node in nodes)


# SentenceContextNodeParser: its vectors must survive, and search as the core's index does.


def test_sentence_nodes_bring_weighted_vectors_that_search_like_the_index(documents, embedding):
    parser = SentenceContextNodeParser(embed_model=embedding, alpha=0.7)
    nodes = parser.get_nodes_from_documents(documents[1:])
    assert all(type(value) is float for value in nodes[0].embedding)
    index = VectorStoreIndex(nodes, embed_model=embedding)
    found = index.as_retriever(similarity_top_k=3).retrieve(QUESTION)

    core = SentenceContextRetriever.from_documents(documents[1:], embedding, similarity_top_k=3, alpha=0.7)
    expected = core.retrieve(QUESTION)
    assert [(i.node.ref_doc_id, i.node.start_char_idx) for i in found] == [
        (i.node.ref_doc_id, i.node.start_char_idx) for i in expected
    ]
    assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-5)


def test_the_passage_of_a_sentence_is_at_hand_but_hidden(documents, embedding):
    nodes = SentenceContextNodeParser(embed_model=embedding).get_nodes_from_documents(documents[:1])
    first = nodes[0]
    assert first.text == "The lighthouse at Cape Orrin was lit in 1871."
    assert first.text == documents[0].text[first.start_char_idx : first.end_char_idx]
    assert first.metadata["original_text"] == first.text
    assert first.metadata["window"] == documents[0].text.split("\n\n")[0]
    assert first.metadata["title"] == "Lamps"
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert first.get_content(mode) == f"title: Lamps\n\n{first.text}"
    assert documents[0].excluded_llm_metadata_keys == ["secret"]

    index = VectorStoreIndex(nodes, embed_model=embedding)
    engine = index.as_retriever(similarity_top_k=1).retrieve("When was the lighthouse lit?")
    (widened,) = MetadataReplacementPostProcessor(target_metadata_key="window").postprocess_nodes(engine)
    assert widened.node.text == documents[0].text.split("\n\n")[0]


async def test_sentence_nodes_conform_like_the_others(documents, embedding):
    parser = SentenceContextNodeParser(embed_model=embedding, passages=2, include_prev_next_rel=False)
    data = parser.to_dict()
    assert data["class_name"] == "SentenceContextNodeParser"
    again = SentenceContextNodeParser.from_dict(data, embed_model=embedding)
    assert again.to_dict() == data
    blank = [Document(text=" ")]
    assert parser.get_nodes_from_documents(blank) == await parser.aget_nodes_from_documents(blank) == []
    nodes = parser.get_nodes_from_documents([*blank, *documents])
    assert places(await again.aget_nodes_from_documents(documents)) == places(nodes)
    coarse = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(documents)
    chained = parser(coarse)
    texts = {document.doc_id: document.text for document in documents}
    assert all(text == texts[doc][start:end] for doc, start, end, text in places(chained))
    with pytest.raises(ValueError, match="alpha"):
        SentenceContextNodeParser(embed_model=embedding, alpha=2.0)


def test_persisted_sentence_vectors_are_found_again(documents, embedding, tmp_path):
    nodes = SentenceContextNodeParser(embed_model=embedding).get_nodes_from_documents(documents)
    index = VectorStoreIndex(nodes, embed_model=embedding)
    index.storage_context.persist(str(tmp_path))
    from llama_index.core import load_index_from_storage

    storage = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(storage, embed_model=embedding)
    expected = index.as_retriever(similarity_top_k=3).retrieve(QUESTION)
    found = loaded.as_retriever(similarity_top_k=3).retrieve(QUESTION)
    assert_alike([(i.node.node_id, i.score) for i in found], [(i.node.node_id, i.score) for i in expected])


async def test_many_tasks_share_one_parser(documents):
    parser = SemanticSegmentationNodeParser(max_tokens=30)
    results = await asyncio.gather(*(parser.aget_nodes_from_documents(documents) for _ in range(8)))
    assert len({tuple(places(nodes)) for nodes in results}) == 1


# SemanticSegmentationNodeParser with an encoder: vectors of nodes in their context.


def test_segments_bring_vectors_in_context_where_an_encoder_is_given(documents, embedding):
    plain = SemanticSegmentationNodeParser(max_tokens=30)
    parser = SemanticSegmentationNodeParser(max_tokens=30, embed_model=embedding, alpha=0.7, whole=0)
    blank = Document(text=" ")
    nodes = parser.get_nodes_from_documents([blank, *documents])
    assert places(nodes) == places(plain.get_nodes_from_documents(documents))
    assert all(node.embedding is None for node in plain.get_nodes_from_documents(documents))

    index = VectorStoreIndex(nodes, embed_model=embedding)
    found = index.as_retriever(similarity_top_k=3).retrieve(QUESTION)
    core = DenseIndex.build(
        [CoreDocument(document.doc_id, document.text) for document in documents],
        resolve_encoder(embedding),
        chunks=Segmenter.from_pretrained("small", max_tokens=30),
        chunk_vectors="context",
        alpha=0.7,
    )
    expected = core.search(QUESTION, 3)
    assert [item.node.text.strip() for item in found] == [candidate.text for candidate in expected]
    assert [item.score for item in found] == pytest.approx([c.score for c in expected], abs=1e-5)


def test_saved_settings_know_whether_nodes_bring_vectors(documents, embedding):
    parser = SemanticSegmentationNodeParser(embed_model=embedding)
    again = SemanticSegmentationNodeParser.from_dict(parser.to_dict(), embed_model=embedding)
    assert again.to_dict() == parser.to_dict()
    first, second = (p.get_nodes_from_documents(documents)[0].embedding for p in (parser, again))
    assert first is not None
    assert_alike(first, second)
    plain = SemanticSegmentationNodeParser()
    assert SemanticSegmentationNodeParser.from_dict(plain.to_dict()).encoder_name == ""
    with pytest.raises(ValueError, match="alpha"):
        SemanticSegmentationNodeParser(alpha=2)
