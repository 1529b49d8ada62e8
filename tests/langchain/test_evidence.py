import pytest
from langchain_core.documents import Document

from langchain_precise import EvidenceCompressor
from precise_rag import read_facts

TEXT = (
    "The harbour has three piers. Ilse Brandt is the captain of the ferry to Velm. "
    "She has sailed since 1998. "
    "The bakery opens at six. Rye bread is sold on Fridays."
)
FISH = "Herring is cheap in autumn. The market closes at noon."
QUESTION = "Who is the captain of the ferry?"


def documents() -> list[Document]:
    return [
        Document(FISH, metadata={"source": "fish.txt"}),
        Document(TEXT, metadata={"source": "harbour.txt", "start_index": 100}),
    ]


def cut(**settings) -> list[Document]:
    compressor = EvidenceCompressor(reranker="packaged", **{"min_score": 0.3, "min_keep": 1, **settings})
    return compressor.compress_documents(documents(), QUESTION)


def test_only_the_evidence_is_returned_and_its_place_is_exact():
    best = next(d for d in cut() if "Ilse Brandt" in d.page_content)
    assert len(best.page_content) < len(TEXT)
    first = best.metadata["start_index"] - 100
    assert TEXT[first : first + len(best.page_content)] == best.page_content
    assert best.metadata["source"] == "harbour.txt"
    facts = read_facts(best)
    assert TEXT[facts["start"] : facts["end"]] == best.page_content
    assert "found" in facts["reason"]


def test_the_documents_passed_in_are_not_changed():
    given = documents()
    EvidenceCompressor(reranker="packaged").compress_documents(given, QUESTION)
    assert given == documents()


def test_nothing_is_returned_if_nothing_is_relevant_and_that_is_allowed():
    assert cut(min_score=1.0, min_keep=0) == []
    assert cut(min_score=1.0, min_keep=1) != []


async def test_as_a_runnable_also_without_blocking():
    runnable = EvidenceCompressor(reranker="packaged").as_runnable()
    given = {"query": QUESTION, "documents": documents()}
    found = runnable.invoke(given)
    assert [d.page_content for d in await runnable.ainvoke(given)] == [d.page_content for d in found]
    assert runnable.invoke({"query": QUESTION, "documents": []}) == []


def test_bad_settings():
    with pytest.raises(ValueError, match="min_score must be"):
        EvidenceCompressor(reranker="packaged", min_score=3)
