"""Stores of both frameworks take what we return, and a retriever over a store sends sentences of it."""

from typing import Any
from uuid import UUID

import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore

from langchain_precise import PreciseEmbeddings
from llamaindex_precise import SelfFeedbackQueryEngine
from precise_rag.errors import InputError
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder
from support.frameworks import FRAMEWORKS, LANGCHAIN, LLAMAINDEX, HashEmbedding, each_framework
from support.velm import QUESTIONS, TEXTS

pytestmark = pytest.mark.filterwarnings("ignore")  # of stores
TOWN = "The town clock was built by Ada Brandt in 1911.\n\nEels are smoked.\n\nRye bread is baked twice."
QUESTION = "Who built the town clock?"
EMBEDDINGS = PreciseEmbeddings(HashEncoder())
KINDS = ["in memory", "chroma", "qdrant"]
FILTERED: list[tuple[Any, str]] = [(LLAMAINDEX, kind) for kind in (*KINDS, "postgres")]
FILTERED += [(LANGCHAIN, kind) for kind in (*KINDS, "faiss", "milvus")]


def llamaindex_store(kind: str, request: pytest.FixtureRequest) -> Any:
    """An empty vector store of LlamaIndex."""
    if kind == "in memory":
        return SimpleVectorStore()
    module = pytest.importorskip(f"llama_index.vector_stores.{kind}")
    if kind == "chroma":
        return module.ChromaVectorStore(chroma_collection=chroma_client().create_collection("town"))
    if kind == "qdrant":
        client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
        return module.QdrantVectorStore(client=client, collection_name="town")
    server = request.getfixturevalue("postgres")
    addresses = [server.replace("postgresql://", f"postgresql+{d}://") for d in ("psycopg2", "asyncpg")]
    options = {"poolclass": pytest.importorskip("sqlalchemy.pool").NullPool}  # it leaves no connection open
    return module.PGVectorStore(*addresses, table_name="town", embed_dim=256, create_engine_kwargs=options)


class LikeMilvus(InMemoryVectorStore):
    """Takes a filter under the name that Milvus has for it."""

    def similarity_search(self, query: str, k: int = 4, expr: Any = None, **_: Any) -> Any:
        return super().similarity_search(query, k, filter=expr)

    async def asimilarity_search(self, query: str, k: int = 4, expr: Any = None, **_: Any) -> Any:
        return self.similarity_search(query, k, expr)


def langchain_store(kind: str) -> Any:
    """An empty vector store of LangChain."""
    if kind in ("in memory", "milvus"):
        return (LikeMilvus if kind == "milvus" else InMemoryVectorStore)(EMBEDDINGS)
    if kind == "faiss":
        module = pytest.importorskip("langchain_community.vectorstores.faiss")
        index = pytest.importorskip("faiss").IndexFlatIP(256)
        docstore = pytest.importorskip("langchain_community.docstore.in_memory").InMemoryDocstore()
        return module.FAISS(EMBEDDINGS, index, docstore, {})
    module = pytest.importorskip(f"langchain_{kind}")
    if kind == "chroma":
        return module.Chroma("town", EMBEDDINGS, client=chroma_client())
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    vectors = pytest.importorskip("qdrant_client.models").VectorParams(size=256, distance="Cosine")
    client.create_collection("town", vectors)
    return module.QdrantVectorStore(client, "town", EMBEDDINGS)


def chroma_client() -> Any:
    """A client without the collection of another test."""
    chromadb = pytest.importorskip("chromadb")
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    if "town" in [collection.name for collection in client.list_collections()]:
        client.delete_collection("town")
    return client


def filled(framework, kind: str, request: pytest.FixtureRequest, pieces: list[Any]) -> Any:
    """A store of this kind with these pieces."""
    if framework is LANGCHAIN:
        store = langchain_store(kind)
        store.add_documents(pieces, ids=[piece.id for piece in pieces])
        return store
    storage = StorageContext.from_defaults(vector_store=llamaindex_store(kind, request))
    nodes = [piece.node for piece in pieces]
    return VectorStoreIndex(nodes, storage_context=storage, embed_model=HashEmbedding())


@each_framework
@pytest.mark.parametrize("kind", KINDS)
def test_every_store_takes_pieces_and_results_as_they_come(framework, kind, request):
    sources = [framework.document(TOWN, "town", doc_id="mine", year=1911)]
    found = framework.find(framework.retriever.from_documents(sources, HashEncoder()), QUESTION)
    results = framework.cut(framework.part("GradientSelection"), found, QUESTION)
    pieces = framework.split(framework.splitter("SemanticSegmentation", max_tokens=14), sources)
    given = {framework.place(piece): piece for piece in (*pieces, *results)}
    store = filled(framework, kind, request, list(given.values()))
    stored = framework.find(framework.stock_retriever(store, len(given)), QUESTION)
    assert {framework.place(piece) for piece in stored} == set(given)
    for after in stored:
        before = given[framework.place(after)]
        assert framework.text(after) == framework.text(before)
        assert framework.metadata(before).items() <= framework.metadata(after).items()
        assert framework.place(after)[0] == "town"
    best = framework.cut(framework.part("Rerank", top_n=1), stored, QUESTION)[0]
    facts = read_facts(best)
    assert (facts["doc_id"], TOWN[facts["start"] : facts["end"]]) == ("town", framework.text(best))


def filters_of(framework, kind: str) -> list[dict[str, Any]]:
    """Arguments of `from_store`, each with the store's own filter for the tenant "a"."""
    if framework is LLAMAINDEX:
        of_a = MetadataFilter(key="tenant", value="a")
        return [{"filters": of_a}, {"filters": MetadataFilters(filters=[of_a])}]
    wanted: Any = {"tenant": "a"}
    if kind in ("in memory", "milvus"):
        wanted = lambda document: document.metadata["tenant"] == "a"  # noqa: E731
    if kind == "qdrant":
        models = pytest.importorskip("qdrant_client.models")
        match = models.MatchValue(value="a")
        wanted = models.Filter(must=[models.FieldCondition(key="metadata.tenant", match=match)])
    return [{"filter": wanted}, {"search_kwargs": {"expr" if kind == "milvus" else "filter": wanted}}]


@pytest.mark.parametrize(("framework", "kind"), FILTERED)
async def test_a_filter_of_a_store_returns_no_sentence_of_another_tenant(framework, kind, request):
    text = "The town clock number {} was built by {} in 1911. Eels are smoked."
    names = [name for _ in range(5) for name in ("Ada", "Bert")]
    pieces = [
        framework.piece(text.format(row, name), str(UUID(int=row)), tenant=name[0].lower())
        for row, name in enumerate(names)
    ]
    store = filled(framework, kind, request, pieces)
    make = framework.retriever.from_store
    everything = make(store, selector=None)
    found = framework.find(everything, QUESTION)
    assert {framework.metadata(piece)["tenant"] for piece in found} == {"a", "b"}
    filters = filters_of(framework, kind)
    given = [make(store, selector=None, **wanted) for wanted in filters]
    for of_a in filters[0].values():  # what the caller changes later changes no retriever
        if framework is LLAMAINDEX:
            of_a.value = "b"
        elif isinstance(of_a, dict):
            of_a["tenant"] = "b"
    filters = filters_of(framework, kind)
    results = [framework.find(retriever, QUESTION) for retriever in given]
    if framework is LANGCHAIN:
        results.append(everything.invoke(QUESTION, **filters[0]))
        results.append(await given[0].ainvoke(QUESTION))
        with pytest.raises(InputError, match="takes no second one"):
            given[0].invoke(QUESTION, **filters[0])
    else:
        results.append(framework.loop.from_rag(given[0].rag).retrieve(QueryBundle(QUESTION)))
        answer = framework.loop.from_rag(everything.rag).answer(QUESTION, filter=filters[0]["filters"])
        results.append(answer.source_nodes)
        with pytest.raises(InputError, match="takes no second one"):
            given[0].rag.retrieve(QUESTION, filter=filters[0]["filters"])
    for found in results:
        assert len(found) >= 5
        assert {framework.metadata(piece)["tenant"] for piece in found} == {"a"}
        assert not any("Bert" in framework.text(piece) for piece in found)


@each_framework
def test_the_vectors_of_a_store_are_used_as_they_are(framework):
    store = framework.stock([framework.piece(TOWN, "town")])
    embedding = store.embeddings if framework is LANGCHAIN else store._embed_model
    assert embedding.encoder.calls == [TOWN]
    embedding.encoder.calls.clear()
    assert framework.find(framework.retriever.from_store(store, reranker="packaged"), QUESTION)
    assert embedding.encoder.calls == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_filled_store_gives_the_same_sentences_in_both_frameworks(question):
    found = []
    for framework in FRAMEWORKS.values():
        pieces = [framework.piece(text, f"c{i}") for i, text in enumerate(TEXTS.values()) if text.strip()]
        sent = framework.find(framework.retriever.from_store(framework.stock(pieces)), question)
        found.append({framework.text(piece): read_facts(piece)["score"] for piece in sent})
    assert found[0]
    assert list(found[0]) == list(found[1])
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_a_vector_store_of_llamaindex_is_searched_by_the_embedding_that_filled_it():
    store = llamaindex_store("qdrant", None)
    storage = StorageContext.from_defaults(vector_store=store)
    pieces = enumerate((TOWN, "Bread is baked."), 1)
    nodes = [LLAMAINDEX.piece(text, str(UUID(int=n)), year=1910 + n).node for n, text in pieces]
    VectorStoreIndex(nodes, storage_context=storage, embed_model=HashEmbedding())
    options = {"similarity_top_k": 1, "fetch_k": 1}
    retriever = LLAMAINDEX.retriever.from_store(store, HashEmbedding(), **options)
    hypothetical = QueryBundle("Bread is baked.", custom_embedding_strs=[TOWN])
    for query in (QUESTION, hypothetical):
        assert retriever.retrieve(query)[0].node.metadata["year"] == 1911
    assert retriever.retrieve(QUESTION)[0].node.text == TOWN.split("\n")[0]
    assert len(SelfFeedbackQueryEngine(rag=retriever.rag).retrieve(hypothetical)) == 1


def test_what_cannot_be_searched_or_changed_is_refused_with_advice():
    index, memory = LLAMAINDEX.stock([]), LANGCHAIN.stock([])
    make, from_store = LLAMAINDEX.retriever.from_store, LANGCHAIN.retriever.from_store
    for refused, message in (
        (lambda: make([]), "store must be a vector store or an index"),
        (
            lambda: make(index, similarity_top_k=0),
            "similarity_top_k must be at least 1, or None for excerpts",
        ),
        (lambda: make(index, HashEmbedding()), "an index has its own embed_model"),
        (lambda: make(index, filters={"year": 2}).retrieve(QUESTION), "filters of a store must be Metadata"),
        (lambda: make(index.vector_store), "SimpleVectorStore keeps vectors without their text"),
        (lambda: from_store(memory.as_retriever()), "store must be a LangChain vector store"),
        (lambda: from_store(memory, fetch_k=0), "fetch_k must be"),
        (lambda: from_store(memory, filter=len, search_kwargs={"filter": len}), "pass filter= or search_kw"),
        (lambda: from_store(memory).add_documents([]), "change the collection where it is"),
    ):
        with pytest.raises(InputError, match=message):
            refused()
