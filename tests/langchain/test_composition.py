"""precise-rag components inside stock LangChain ones, and the other way round; more is in the examples."""

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_precise import (
    GradientSelectionCompressor,
    PreciseEmbeddings,
    PreciseRetriever,
    SemanticSegmentationTextSplitter,
)
from precise_rag.facts import read_facts

QUESTION = "Who built the town clock?"
TOWN = "The town clock was built by Ada Brandt in 1911.\n\nEels are smoked.\n\nRye bread is baked twice."


@pytest.fixture
def store(encoder):
    return InMemoryVectorStore(PreciseEmbeddings(encoder))


@pytest.mark.parametrize(
    "splitter",
    [
        SemanticSegmentationTextSplitter(max_tokens=16),
        RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0, add_start_index=True),
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_pieces_of_what_was_found_are_scored_anew(splitter, documents, encoder):
    found = PreciseRetriever.from_documents(documents, encoder).invoke(QUESTION, k=2)
    whole = Document(documents[1].page_content, id="clock", metadata=found[0].metadata)
    pieces = splitter.split_documents([whole])
    kept = GradientSelectionCompressor(min_k=1).compress_documents(pieces, QUESTION)
    assert "Ada Brandt" in kept[0].page_content
    scores = [read_facts(document)["score"] for document in kept]
    assert read_facts(found[0])["score"] not in scores[1:]
    assert all("passage" not in read_facts(document) for document in kept)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_retrievers_of_parents_find_them_by_our_pieces(store):
    classic = pytest.importorskip("langchain_classic.retrievers")
    sources = [Document(TOWN, id="x", metadata={"doc_id": "a"})]
    options = {"vectorstore": store, "docstore": InMemoryStore(), "search_kwargs": {"k": 10}}
    multi = classic.MultiVectorRetriever(**options, id_key="doc_id")
    multi.vectorstore.add_documents(SemanticSegmentationTextSplitter(max_tokens=14).split_documents(sources))
    multi.docstore.mset([("a", sources[0])])
    assert [document.id for document in multi.invoke(QUESTION)] == ["x"]
    parents = classic.ParentDocumentRetriever(
        **options | {"vectorstore": InMemoryVectorStore(store.embeddings)},
        child_splitter=SemanticSegmentationTextSplitter(max_tokens=14),
        parent_splitter=SemanticSegmentationTextSplitter(max_tokens=30),
    )
    parents.add_documents(sources)
    assert "".join(sorted((d.page_content for d in parents.invoke(QUESTION)), key=TOWN.index)) == TOWN
