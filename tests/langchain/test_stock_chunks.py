"""Over stock chunks: one path for the parts, never more than stock, and "more" sends more."""

from pydoc_data.topics import topics

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_precise import EvidenceCompressor, PreciseEmbeddings, SelfFeedbackChain
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.tokens import estimate_tokens

QUESTIONS = (
    "When is the else clause of a try statement executed?",
    "How is a value formatted with a width?",
    "What does the nonlocal statement do?",
)
GOOD, MORE = '{"score": 10, "adjustment": 0}', '{"score": 4, "adjustment": 1}'


@pytest.fixture(scope="module")
def stock() -> InMemoryVectorStore:
    pages = ("try", "formatstrings", "nonlocal", "with", "typesseq", "compound", "objects")
    store = InMemoryVectorStore(PreciseEmbeddings(HashEncoder()))
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    store.add_documents(splitter.split_documents([Document(topics[page], id=page) for page in pages]))
    return store


def tokens(documents: list[Document]) -> int:
    return sum(estimate_tokens(one.page_content) for one in documents)


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_parts_send_the_same_and_less_than_stock(stock: InMemoryVectorStore, question: str) -> None:
    retriever = stock.as_retriever(search_kwargs={"k": 20})
    cut = EvidenceCompressor(reranker="packaged").compress_documents(retriever.invoke(question), question)
    chain = SelfFeedbackChain(retriever=retriever, llm=ScriptedLLM(["So [1].", GOOD]), reranker="packaged")
    sent = chain.invoke(question)["context"]
    assert sorted(one.page_content for one in sent) == sorted(one.page_content for one in cut)
    assert 0 < tokens(cut) < tokens(stock.as_retriever().invoke(question))


def test_more_sends_more(stock: InMemoryVectorStore) -> None:
    chain = SelfFeedbackChain(
        retriever=stock.as_retriever(search_kwargs={"k": 20}),
        llm=ScriptedLLM(["Unsure.", MORE, "Still unsure.", MORE, "So [1].", GOOD]),
        reranker="packaged",
    )
    rounds = chain.invoke(QUESTIONS[0])["trace"]["rounds"]
    sizes = [len(one["kept"]) for one in rounds]
    assert [one["step"] for one in rounds] == [0, 1, 2]
    assert sizes[0] < sizes[1] < sizes[2]
