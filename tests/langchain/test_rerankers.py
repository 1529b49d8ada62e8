"""Every part that takes a reranker takes any, and only its order counts."""

from collections.abc import Callable, Sequence
from pydoc_data.topics import topics
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_precise import EvidenceCompressor, PreciseRetriever, SelfFeedbackChain
from langchain_precise.papers import GradientSelectionCompressor, HybridRetriever, RerankCompressor
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.rerankers import BROUGHT, QUESTION, logit

DOCUMENTS = [Document(topics[page], id=page) for page in ("try", "while", "with", "for")]
CHUNKS = [
    Document(text, id=f"{page}{n}")
    for page in ("try", "with")
    for n, text in enumerate(topics[page].split("\n\n"))
    if len(text) > 80
]
RETRIEVER = HybridRetriever.from_documents(DOCUMENTS, HashEncoder())


def texts(documents: Sequence[Document]) -> list[str]:
    return [document.page_content for document in documents]


def answered(reranker: Any) -> list[str]:
    chain = SelfFeedbackChain(
        retriever=RETRIEVER,
        llm=ScriptedLLM(["When no exception [1].", '{"score": 10, "adjustment": 0}']),
        reranker=reranker,
    )
    return texts(chain.invoke(QUESTION)["context"])


PARTS: dict[str, Callable[[Any], list[str]]] = {
    "PreciseRetriever": lambda reranker: texts(
        PreciseRetriever.from_index(RETRIEVER.index, reranker=reranker).invoke(QUESTION)
    ),
    "EvidenceCompressor": lambda reranker: texts(
        EvidenceCompressor(reranker=reranker).compress_documents(CHUNKS, QUESTION)
    ),
    "GradientSelectionCompressor": lambda reranker: texts(
        GradientSelectionCompressor(reranker=reranker).compress_documents(CHUNKS, QUESTION)
    ),
    "SelfFeedbackChain": answered,
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_rerankers_with_one_order_give_one_result(part: Callable[[Any], list[str]]) -> None:
    found = {kind: part(make()) for kind, make in BROUGHT.items()}
    first = next(iter(found.values()))
    assert first
    assert {kind: result == first for kind, result in found.items()} == dict.fromkeys(BROUGHT, True)


@pytest.mark.parametrize("make", BROUGHT.values(), ids=BROUGHT)
def test_reranking_alone_is_by_their_order(make: Callable[[], Any]) -> None:
    found = RerankCompressor(reranker=make()).compress_documents(CHUNKS, QUESTION)
    expected = sorted((logit(QUESTION, text) for text in texts(CHUNKS)), reverse=True)
    assert [logit(QUESTION, text) for text in texts(found)] == pytest.approx(expected)
