"""Weighted vectors in real vector stores: plain similarity search there gives ParetoRAG's ranking.

Qdrant in its local mode through LlamaIndex, Chroma in memory through LangChain, and LanceDB on disk.
"""

from pathlib import Path
from uuid import NAMESPACE_URL, uuid4, uuid5

import numpy as np
import pytest

from precise_rag.index import SentenceContextIndex, WeightedPiece, weighted_sentences
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
DOCUMENTS = [
    Document(
        "tea", "Green tea is steamed. Black tea is oxidised fully.\n\nWhite tea is dried.", {"shelf": 1}
    ),
    Document(
        "iron", "Iron rusts in damp air. Zinc keeps it bright.\n\nSteel is iron with carbon.", {"shelf": 2}
    ),
    Document(
        "bees", "Bees dance to tell of flowers. The dance points at the sun. Drones do not.", {"shelf": 3}
    ),
]
QUERIES = ("How is black tea made?", "What happens to iron in damp air?", "What does the bees' dance tell?")
TOP_K = 2


@pytest.fixture(scope="module")
def sentences() -> list[WeightedPiece]:
    return list(weighted_sentences(DOCUMENTS, HashEncoder(), alpha=0.7))


def expected(query: str) -> dict[str, float]:
    index = SentenceContextIndex.build(DOCUMENTS, HashEncoder(), alpha=0.7)
    return {c.id: c.score for c in index.search(query, TOP_K)}


def query_vector(query: str) -> list[float]:
    return [float(value) for value in HashEncoder().encode_queries([query])[0]]


def test_sentences_carry_what_a_store_needs(sentences: list[WeightedPiece]) -> None:
    assert [s.text for s in sentences[:3]] == [
        "Green tea is steamed.",
        "Black tea is oxidised fully.",
        "White tea is dried.",
    ]
    assert sentences[1].id == "tea:22-50"
    assert sentences[1].metadata == {
        "shelf": 1,
        "doc_id": "tea",
        "start": 22,
        "end": 50,
        "passage_start": 0,
        "passage_end": 50,
    }
    np.testing.assert_allclose([np.linalg.norm(s.vector) for s in sentences], 1, atol=1e-5)


def test_documents_are_weighed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(weighted_sentences(DOCUMENTS, HashEncoder()))
    monkeypatch.setattr("precise_rag.index.weighted._DOCUMENTS", 1)
    parts = list(weighted_sentences(iter([Document("blank", " "), *DOCUMENTS]), HashEncoder()))
    assert [s.id for s in parts] == [s.id for s in whole]
    np.testing.assert_allclose([s.vector for s in parts], [s.vector for s in whole], atol=1e-6)


def test_qdrant_through_llamaindex(sentences: list[WeightedPiece]) -> None:
    qdrant_client = pytest.importorskip("qdrant_client")
    stores = pytest.importorskip("llama_index.vector_stores.qdrant")
    core = pytest.importorskip("llama_index.core")
    schema = pytest.importorskip("llama_index.core.schema")
    store = stores.QdrantVectorStore("sentences", client=qdrant_client.QdrantClient(":memory:"))
    nodes = [
        schema.TextNode(
            id_=str(uuid5(NAMESPACE_URL, s.id)),
            text=s.text,
            embedding=s.vector.tolist(),
            metadata={**s.metadata, "id": s.id},
        )
        for s in sentences
    ]
    storage = core.StorageContext.from_defaults(vector_store=store)
    model = core.MockEmbedding(embed_dim=256)
    index = core.VectorStoreIndex(nodes, storage_context=storage, embed_model=model)
    for query in QUERIES:
        bundle = schema.QueryBundle(query, embedding=query_vector(query))
        found = index.as_retriever(similarity_top_k=TOP_K).retrieve(bundle)
        assert {f.node.metadata["id"]: f.score for f in found} == pytest.approx(expected(query), abs=1e-4)


def test_chroma_through_langchain(sentences: list[WeightedPiece]) -> None:
    chromadb = pytest.importorskip("chromadb")
    langchain_chroma = pytest.importorskip("langchain_chroma")
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    name = f"sentences-{uuid4().hex}"
    client.create_collection(name, metadata={"hnsw:space": "cosine"}).add(
        ids=[s.id for s in sentences],
        embeddings=[s.vector for s in sentences],
        documents=[s.text for s in sentences],
        metadatas=[s.metadata for s in sentences],
    )
    store = langchain_chroma.Chroma(collection_name=name, client=client)
    for query in QUERIES:
        found = store.similarity_search_by_vector_with_relevance_scores(query_vector(query), k=TOP_K)
        scores = {
            f"{d.metadata['doc_id']}:{d.metadata['start']}-{d.metadata['end']}": 1 - s for d, s in found
        }
        assert scores == pytest.approx(expected(query), abs=1e-4)


def test_lancedb_on_disk(sentences: list[WeightedPiece], tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    rows = [{"id": s.id, "text": s.text, "vector": s.vector, **s.metadata} for s in sentences]
    table = lancedb.connect(tmp_path).create_table("sentences", rows)
    for query in QUERIES:
        found = table.search(query_vector(query)).distance_type("cosine").limit(TOP_K).to_list()
        assert {f["id"]: 1 - f["_distance"] for f in found} == pytest.approx(expected(query), abs=1e-4)
