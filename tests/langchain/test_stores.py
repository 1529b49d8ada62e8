"""Pieces and results in stores, and stores in front of compressors: everything arrives as it was."""

from uuid import UUID

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_precise import (
    GradientSelectionCompressor,
    PreciseEmbeddings,
    PreciseRetriever,
    RerankCompressor,
    SemanticSegmentationTextSplitter,
)
from precise_rag import read_facts
from precise_rag.errors import InputError
from precise_rag.testing import HashEncoder

TOWN = "The town clock was built by Ada Brandt in 1911.\n\nEels are smoked.\n\nRye bread is baked twice."
SOURCES = [Document(TOWN, id="town", metadata={"doc_id": "mine", "year": 1911})]
QUESTION = "Who built the town clock?"


ENCODER = HashEncoder()
EMBEDDINGS = PreciseEmbeddings(ENCODER)


def in_memory():
    return InMemoryVectorStore(EMBEDDINGS)


def chroma():
    module = pytest.importorskip("langchain_chroma")
    chromadb = pytest.importorskip("chromadb")
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    if "town" in [collection.name for collection in client.list_collections()]:
        client.delete_collection("town")
    return module.Chroma("town", EMBEDDINGS, client=client)


def qdrant():
    module = pytest.importorskip("langchain_qdrant")
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    vectors = pytest.importorskip("qdrant_client.models").VectorParams(size=256, distance="Cosine")
    client.create_collection("town", vectors)
    return module.QdrantVectorStore(client, "town", EMBEDDINGS)


def milvus(folder):
    module = pytest.importorskip("langchain_milvus")
    pytest.importorskip("milvus_lite")
    return module.Milvus(EMBEDDINGS, connection_args={"uri": str(folder / "town.db")})


def faiss():
    module = pytest.importorskip("langchain_community.vectorstores.faiss")
    index = pytest.importorskip("faiss").IndexFlatIP(256)
    docstore = pytest.importorskip("langchain_community.docstore.in_memory").InMemoryDocstore()
    return module.FAISS(EMBEDDINGS, index, docstore, {})


def postgres(server):
    module = pytest.importorskip("langchain_postgres")
    pool = pytest.importorskip("sqlalchemy.pool").NullPool  # it leaves no connection open
    address = server.replace("postgresql://", "postgresql+psycopg://")
    engine = module.PGEngine.from_connection_string(address, poolclass=pool)
    columns = [module.Column("tenant", "TEXT")]
    engine.init_vectorstore_table("town", 256, metadata_columns=columns, overwrite_existing=True)
    return module.PGVectorStore.create_sync(engine, EMBEDDINGS, "town", metadata_columns=["tenant"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("make", [in_memory, chroma, qdrant])
def test_every_store_takes_pieces_and_results_as_they_come(make):
    store = make()
    pieces = SemanticSegmentationTextSplitter(max_tokens=14).split_documents(SOURCES)
    found = PreciseRetriever.from_documents(SOURCES, HashEncoder()).invoke(QUESTION)
    results = GradientSelectionCompressor().compress_documents(found, QUESTION)
    for given in (pieces, results):
        ids = store.add_documents(given)
        assert ids == [document.id for document in given]
        for before in given:
            [after] = store.get_by_ids([before.id])
            assert after.page_content == before.page_content
            assert before.metadata.items() <= after.metadata.items()
            assert read_facts(after) == read_facts(before) != {}
            assert after.metadata["doc_id"] == "mine"
    best = RerankCompressor(top_n=1).compress_documents(store.similarity_search(QUESTION, 4), QUESTION)[0]
    facts = read_facts(best)
    assert TOWN[facts["start"] : facts["end"]] == best.page_content
    assert facts["doc_id"] == "town"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_multi_vector_retriever_finds_its_parents():
    multi = pytest.importorskip("langchain_classic.retrievers.multi_vector")
    parents = [Document(TOWN, id="x"), Document("The ferry sails at nine. It carries mail.", id="y")]
    children = []
    for key, parent in zip("ab", parents, strict=True):
        source = parent.model_copy(update={"metadata": {"doc_id": key}})
        children += SemanticSegmentationTextSplitter(max_tokens=14).split_documents([source])
    retriever = multi.MultiVectorRetriever(
        vectorstore=in_memory(), docstore=InMemoryStore(), id_key="doc_id", search_kwargs={"k": 10}
    )
    retriever.vectorstore.add_documents(children)
    retriever.docstore.mset(list(zip("ab", parents, strict=True)))
    assert {document.id for document in retriever.invoke(QUESTION)} == {"x", "y"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_parent_document_retriever_finds_its_parents():
    classic = pytest.importorskip("langchain_classic.retrievers")
    retriever = classic.ParentDocumentRetriever(
        vectorstore=in_memory(),
        docstore=InMemoryStore(),
        child_splitter=SemanticSegmentationTextSplitter(max_tokens=14),
        parent_splitter=SemanticSegmentationTextSplitter(max_tokens=30),
        search_kwargs={"k": 10},
    )
    retriever.add_documents(SOURCES)
    assert "".join(sorted((d.page_content for d in retriever.invoke(QUESTION)), key=TOWN.index)) == TOWN


def test_a_retriever_over_a_filled_store_sends_sentences_and_takes_its_filters():
    store = in_memory()
    store.add_documents([*SOURCES, Document("The ferry sails at nine. It carries mail.", id="ferry")])
    retriever = PreciseRetriever.from_store(store, k=1)
    [best] = retriever.invoke(QUESTION)
    assert best.page_content in TOWN
    assert len(best.page_content) < len(TOWN)
    assert best.metadata["doc_id"] == "mine"
    [other] = retriever.invoke(QUESTION, filter=lambda document: document.id == "ferry")
    assert other.page_content.startswith(("The ferry", "It carries"))
    with pytest.raises(InputError, match="change the collection where it is"):
        retriever.add_documents(SOURCES)


@pytest.fixture(params=["in memory", "chroma", "qdrant", "milvus", "faiss", "postgres"])
def tenants(request, tmp_path):
    """A store, and its own filter for the documents of the tenant "a"."""
    if request.param == "qdrant":
        models = pytest.importorskip("qdrant_client.models")
        match = models.MatchValue(value="a")
        return qdrant(), models.Filter(must=[models.FieldCondition(key="metadata.tenant", match=match)])
    if request.param == "milvus":
        return milvus(tmp_path), 'tenant == "a"'
    if request.param == "postgres":
        return postgres(request.getfixturevalue("postgres")), {"tenant": "a"}
    made = {"in memory": in_memory, "chroma": chroma, "faiss": faiss}[request.param]()
    return made, (lambda d: d.metadata["tenant"] == "a") if request.param == "in memory" else {"tenant": "a"}


@pytest.mark.filterwarnings("ignore")
async def test_a_filter_of_a_store_returns_no_sentence_of_another_tenant(tenants):
    store, of_a = tenants
    store.add_documents(
        [
            Document(
                f"The town clock number {i} was built by {name} in 1911. Eels are smoked.", id=f"{name}{i}"
            ).model_copy(update={"metadata": {"tenant": tenant}})
            for i in range(5)
            for name, tenant in (("Ada", "a"), ("Bert", "b"))
        ],
        ids=[str(UUID(int=number)) for number in range(10)],
    )
    everything = PreciseRetriever.from_store(store, selector=None)
    assert {document.metadata["tenant"] for document in everything.invoke(QUESTION)} == {"a", "b"}
    given = PreciseRetriever.from_store(store, selector=None, search_kwargs=kwargs_of(store, of_a))
    for found in (
        everything.invoke(QUESTION, filter=of_a),
        await everything.ainvoke(QUESTION, filter=of_a),
        given.invoke(QUESTION),
    ):
        assert len(found) >= 5
        assert {document.metadata["tenant"] for document in found} == {"a"}
        assert not any("Bert" in document.page_content for document in found)


def kwargs_of(store, wanted):
    return {"expr" if isinstance(wanted, str) else "filter": wanted}


def test_the_filter_of_a_store_can_be_set_once_for_all():
    store = InMemoryVectorStore(PreciseEmbeddings(HashEncoder()))
    texts = {"ferry": "The ferry leaves at nine.", "mill": "The mill opens at nine."}
    store.add_documents([Document(text, id=name) for name, text in texts.items()])
    retriever = PreciseRetriever.from_store(store, filter=lambda document: document.id == "mill")
    question = "When does the ferry leave?"
    assert [d.page_content for d in retriever.invoke(question)] == [texts["mill"]]
    other = retriever.invoke(question, filter=lambda document: document.id == "ferry")
    assert [d.page_content for d in other] == [texts["ferry"]]
    with pytest.raises(InputError, match="pass filter= or search_kwargs="):
        PreciseRetriever.from_store(store, filter=len, search_kwargs={"filter": len})


def test_a_retriever_over_no_store_is_an_error():
    with pytest.raises(InputError, match="store must be a LangChain vector store"):
        PreciseRetriever.from_store(in_memory().as_retriever())
    with pytest.raises(InputError, match="fetch_k must be"):
        PreciseRetriever.from_store(in_memory(), fetch_k=0)


def in_memory_with(vectors):
    store = in_memory()
    store.add_documents([Document(text, id=text) for text in vectors])
    for text, vector in vectors.items():
        store.store[text]["vector"] = vector
    return store


def faiss_with(vectors):
    store = faiss()
    store.add_embeddings(vectors.items())
    return store


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("filled", [in_memory_with, faiss_with])
def test_vectors_of_a_store_are_used_as_they_are(filled):
    [vector] = HashEncoder().encode([QUESTION]).tolist()
    opposite = [-one for one in vector]
    store = filled({"Eels are smoked on Fridays.": vector, "Nobody built the town clock.": opposite})
    ENCODER.calls.clear()
    found = PreciseRetriever.from_store(store, fetch_k=1, reranker="packaged").invoke(QUESTION)
    assert "Eels are smoked on Fridays." in [one.page_content for one in found]
    assert set(ENCODER.calls) <= {QUESTION}
