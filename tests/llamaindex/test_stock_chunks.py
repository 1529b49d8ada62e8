"""Over a stock index: one path for the parts, never more than stock, and "more" sends more."""

from pydoc_data.topics import topics

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.schema import NodeWithScore

from llamaindex_precise import EvidencePostprocessor, SelfFeedbackQueryEngine
from precise_rag.testing import ScriptedLLM
from precise_rag.tokens import estimate_tokens
from support.llamaindex import HashEmbedding

QUESTIONS = (
    "When is the else clause of a try statement executed?",
    "How is a value formatted with a width?",
    "What does the nonlocal statement do?",
)
GOOD, MORE = '{"score": 10, "adjustment": 0}', '{"score": 4, "adjustment": 1}'


@pytest.fixture(scope="module")
def stock() -> VectorStoreIndex:
    pages = ("try", "formatstrings", "nonlocal", "with", "typesseq", "compound", "objects")
    documents = [Document(text=topics[page], id_=page) for page in pages]
    return VectorStoreIndex.from_documents(documents, embed_model=HashEmbedding())


def tokens(nodes: list[NodeWithScore]) -> int:
    return sum(estimate_tokens(one.node.get_content()) for one in nodes)


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_parts_send_the_same_and_less_than_stock(stock: VectorStoreIndex, question: str) -> None:
    found = stock.as_retriever(similarity_top_k=10).retrieve(question)
    cut = EvidencePostprocessor(reranker="packaged").postprocess_nodes(found, query_str=question)
    engine = SelfFeedbackQueryEngine(
        stock.as_retriever(similarity_top_k=10), ScriptedLLM(["So [1].", GOOD]), reranker="packaged"
    )
    sent = engine.query(question).source_nodes
    assert sorted(one.node.get_content() for one in sent) == sorted(one.node.get_content() for one in cut)
    assert 0 < tokens(cut) < tokens(stock.as_retriever().retrieve(question))


def test_more_sends_more(stock: VectorStoreIndex) -> None:
    engine = SelfFeedbackQueryEngine(
        stock.as_retriever(similarity_top_k=10),
        ScriptedLLM(["Unsure.", MORE, "Still unsure.", MORE, "So [1].", GOOD]),
        reranker="packaged",
    )
    rounds = engine.query(QUESTIONS[0]).metadata["precise"]["trace"]["rounds"]
    sizes = [len(one["kept"]) for one in rounds]
    assert [one["step"] for one in rounds] == [0, 1, 2]
    assert sizes[0] < sizes[1] < sizes[2]
