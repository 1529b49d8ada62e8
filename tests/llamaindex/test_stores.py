"""Nodes and results in stores, and stores in front of postprocessors: everything arrives as it was."""

from typing import Any
from uuid import UUID

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import Document, NodeWithScore, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore

from llamaindex_precise import (
    GradientSelectionPostprocessor,
    PreciseRerankPostprocessor,
    PreciseRetriever,
    SemanticSegmentationNodeParser,
)
from precise_rag import read_facts
from precise_rag.errors import InputError
from precise_rag.testing import HashEncoder
from support.llamaindex import HashEmbedding

TOWN = "The town clock was built by Ada Brandt in 1911.\n\nEels are smoked.\n\nRye bread is baked twice."
SOURCES = [Document(text=TOWN, doc_id="town", metadata={"doc_id": "mine", "year": 1911})]
QUESTION = "Who built the town clock?"


def in_memory():
    return SimpleVectorStore()


def chroma():
    module = pytest.importorskip("llama_index.vector_stores.chroma")
    chromadb = pytest.importorskip("chromadb")
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    if "nodes" in [collection.name for collection in client.list_collections()]:
        client.delete_collection("nodes")
    return module.ChromaVectorStore(chroma_collection=client.create_collection("nodes"))


def qdrant():
    module = pytest.importorskip("llama_index.vector_stores.qdrant")
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    return module.QdrantVectorStore(client=client, collection_name="nodes")


def milvus(folder):
    module = pytest.importorskip("llama_index.vector_stores.milvus")
    pytest.importorskip("milvus_lite")
    return module.MilvusVectorStore(str(folder / "nodes.db"), dim=256)


def faiss():
    module = pytest.importorskip("llama_index.vector_stores.faiss")
    return module.FaissVectorStore(faiss_index=pytest.importorskip("faiss").IndexFlatL2(256))


def postgres(server):
    module = pytest.importorskip("llama_index.vector_stores.postgres")
    pool = pytest.importorskip("sqlalchemy.pool").NullPool  # it leaves no connection open
    drivers = ("psycopg2", "asyncpg")
    addresses = [server.replace("postgresql://", f"postgresql+{driver}://") for driver in drivers]
    options = {"poolclass": pool}
    return module.PGVectorStore(*addresses, table_name="nodes", embed_dim=256, create_engine_kwargs=options)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes:UserWarning")
@pytest.mark.parametrize("make", [in_memory, chroma, qdrant])
def test_every_store_takes_nodes_and_results_as_they_come(make):
    found = PreciseRetriever.from_documents(SOURCES, HashEncoder()).retrieve(QUESTION)
    results = GradientSelectionPostprocessor().postprocess_nodes(found, query_str=QUESTION)
    nodes = SemanticSegmentationNodeParser(max_tokens=14).get_nodes_from_documents(SOURCES)
    given = {node.node_id: node for node in (*nodes, *(item.node for item in results))}
    storage = StorageContext.from_defaults(vector_store=make())
    index = VectorStoreIndex(list(given.values()), storage_context=storage, embed_model=HashEmbedding())
    stored: list[NodeWithScore] = index.as_retriever(similarity_top_k=len(given)).retrieve(QUESTION)
    assert {item.node.node_id for item in stored} == set(given)
    for item in stored:
        before = given[item.node.node_id]
        assert item.node.metadata["doc_id"] == "mine"
        assert read_facts(item) == read_facts(before)
        assert (item.node.text, item.node.ref_doc_id) == (before.text, "town")
    best = PreciseRerankPostprocessor(top_n=1).postprocess_nodes(stored, query_str=QUESTION)[0]
    facts = read_facts(best)
    assert facts["doc_id"] == "town"
    assert TOWN[facts["start"] : facts["end"]] == best.node.text


def test_ids_of_nodes_are_the_same_in_every_run_unless_the_caller_makes_them():
    parser = SemanticSegmentationNodeParser(max_tokens=14)
    first, second = (parser.get_nodes_from_documents(SOURCES) for _ in range(2))
    assert [node.node_id for node in first] == [node.node_id for node in second]
    assert len({node.node_id for node in first}) == len(first) > 1
    own = SemanticSegmentationNodeParser(max_tokens=14, id_func=lambda i, document: f"{document.node_id}/{i}")
    assert own.get_nodes_from_documents(SOURCES)[0].node_id == "town/0"


@pytest.mark.parametrize("is_index", [True, False])
def test_a_retriever_over_a_filled_store_sends_sentences_and_takes_its_filters(is_index):
    other = TextNode(text="The ferry sails at nine. It carries mail.", metadata={"year": 2})
    town = TextNode(text=TOWN, metadata={"year": 1911})
    index = VectorStoreIndex([town, other], embed_model=HashEmbedding())
    given: dict[str, Any] = {"store": index, "similarity_top_k": 1}
    if not is_index:
        given |= {"store": qdrant_filled(index), "embed_model": HashEmbedding()}
    [best] = PreciseRetriever.from_store(**given).retrieve(QUESTION)
    assert best.node.text in TOWN
    assert len(best.node.text) < len(TOWN)
    assert best.node.metadata["year"] == 1911
    wanted = MetadataFilters(filters=[MetadataFilter(key="year", value=2)])
    for filters in (wanted, wanted.filters[0]):
        [found] = PreciseRetriever.from_store(**given, filters=filters).retrieve(QUESTION)
        assert found.node.text in other.text


@pytest.fixture(params=["in memory", "chroma", "qdrant", "milvus", "postgres"])
def store(request, tmp_path):
    if request.param == "milvus":
        return milvus(tmp_path)
    if request.param == "postgres":
        return postgres(request.getfixturevalue("postgres"))
    return {"in memory": in_memory, "chroma": chroma, "qdrant": qdrant}[request.param]()


@pytest.mark.filterwarnings("ignore")
def test_a_filter_of_a_store_returns_no_sentence_of_another_tenant(store):
    nodes = [
        TextNode(
            id_=str(UUID(int=2 * i + (tenant == "b"))),
            text=f"The town clock number {i} was built by {name} in 1911. Eels are smoked.",
            metadata={"tenant": tenant},
        )
        for i in range(5)
        for name, tenant in (("Ada", "a"), ("Bert", "b"))
    ]
    storage = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=HashEmbedding())
    of_a = MetadataFilter(key="tenant", value="a")
    everything = PreciseRetriever.from_store(index, selector=None)
    assert {item.node.metadata["tenant"] for item in everything.retrieve(QUESTION)} == {"a", "b"}
    for filters in (of_a, MetadataFilters(filters=[of_a])):
        found = PreciseRetriever.from_store(index, selector=None, filters=filters).retrieve(QUESTION)
        assert len(found) >= 5
        assert {item.node.metadata["tenant"] for item in found} == {"a"}
        assert not any("Bert" in item.node.text for item in found)


def qdrant_filled(index):
    store = qdrant()
    nodes = [node.model_copy(update={"embedding": None}) for node in index.docstore.docs.values()]
    VectorStoreIndex(
        nodes,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=HashEmbedding(),
    )
    return store


def test_a_retriever_over_no_store_is_an_error():
    with pytest.raises(InputError, match="store must be a vector store or an index"):
        PreciseRetriever.from_store(SOURCES)
    index = VectorStoreIndex([], embed_model=HashEmbedding())
    with pytest.raises(InputError, match="an index has its own embed_model"):
        PreciseRetriever.from_store(index, HashEmbedding())
    with pytest.raises(InputError, match="filters of a store must be MetadataFilters"):
        PreciseRetriever.from_store(index, filters={"year": 2}).retrieve(QUESTION)
    with pytest.raises(InputError, match="SimpleVectorStore keeps vectors without their text"):
        PreciseRetriever.from_store(index.vector_store)


@pytest.mark.parametrize("make", [in_memory, chroma, faiss])
def test_vectors_of_a_store_are_used_as_they_are(make):
    embedding = HashEmbedding()
    [vector] = embedding.encoder.encode([QUESTION]).tolist()
    nodes = [
        TextNode(text="Eels are smoked on Fridays.", id_="near", embedding=vector),
        TextNode(text="Nobody built the town clock.", id_="far", embedding=[-one for one in vector]),
    ]
    storage = StorageContext.from_defaults(vector_store=make())
    store = VectorStoreIndex(nodes, storage_context=storage, embed_model=embedding)
    embedding.encoder.calls.clear()
    found = PreciseRetriever.from_store(store, fetch_k=1, reranker="packaged").retrieve(QUESTION)
    assert "Eels are smoked on Fridays." in [one.node.get_content() for one in found]
    assert set(embedding.encoder.calls) <= {QUESTION}
