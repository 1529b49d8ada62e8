"""Every part that takes a reranker takes any, and only its order counts."""

from collections.abc import Callable, Sequence
from pydoc_data.topics import topics
from typing import Any

import pytest
from llama_index.core import Document as LlamaDocument
from llama_index.core.schema import NodeWithScore, TextNode

from llamaindex_precise import (
    EvidencePostprocessor,
    PreciseRetriever,
    SelfFeedbackQueryEngine,
)
from llamaindex_precise.papers import (
    GradientSelectionPostprocessor,
    HybridRetriever,
    PreciseRerankPostprocessor,
)
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.rerankers import BROUGHT, QUESTION, logit

DOCUMENTS = [LlamaDocument(text=topics[page], id_=page) for page in ("try", "while", "with", "for")]
NODES = [
    NodeWithScore(node=TextNode(text=text, id_=f"{page}{n}"), score=0.5)
    for page in ("try", "with")
    for n, text in enumerate(topics[page].split("\n\n"))
    if len(text) > 80
]
RETRIEVER = HybridRetriever.from_documents(DOCUMENTS, HashEncoder())


def texts(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [node.node.get_content() for node in nodes]


def answered(reranker: Any) -> list[str]:
    engine = SelfFeedbackQueryEngine(
        RETRIEVER,
        ScriptedLLM(["When no exception [1].", '{"score": 10, "adjustment": 0}']),
        reranker=reranker,
    )
    return texts(engine.query(QUESTION).source_nodes)


PARTS: dict[str, Callable[[Any], list[str]]] = {
    "PreciseRetriever": lambda reranker: texts(
        PreciseRetriever.from_index(RETRIEVER.index, reranker=reranker).retrieve(QUESTION)
    ),
    "EvidencePostprocessor": lambda reranker: texts(
        EvidencePostprocessor(reranker=reranker).postprocess_nodes(NODES, query_str=QUESTION)
    ),
    "GradientSelectionPostprocessor": lambda reranker: texts(
        GradientSelectionPostprocessor(reranker=reranker).postprocess_nodes(NODES, query_str=QUESTION)
    ),
    "SelfFeedbackQueryEngine": answered,
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_rerankers_with_one_order_give_one_result(part: Callable[[Any], list[str]]) -> None:
    found = {kind: part(make()) for kind, make in BROUGHT.items()}
    first = next(iter(found.values()))
    assert first
    assert {kind: result == first for kind, result in found.items()} == dict.fromkeys(BROUGHT, True)


@pytest.mark.parametrize("make", BROUGHT.values(), ids=BROUGHT)
def test_reranking_alone_is_by_their_order(make: Callable[[], Any]) -> None:
    found = PreciseRerankPostprocessor(reranker=make()).postprocess_nodes(NODES, query_str=QUESTION)
    expected = sorted((logit(QUESTION, text) for text in texts(NODES)), reverse=True)
    assert [logit(QUESTION, text) for text in texts(found)] == pytest.approx(expected)
