"""Rerankers that users bring, all with one order: by the words that a text shares with the question."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import BaseDocumentCompressor, Document
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore

from precise_rag.stems import read_words
from precise_rag.types import Candidate, ScoreScale

WHOSE_LAMP = "Who keeps the lamp of the harbour?"
LAMP = [
    "Ilse Brandt has kept the lamp of the harbour since the spring.",
    "The lamp is lit at dusk.",
    "Bread prices rose in the valley after the long winter. " * 40,
    "Two ferries cross the river every hour.",
]
QUESTION = "When is the else clause of a try statement executed?"


def logit(query: str, text: str) -> float:
    """A made-up logit; no two texts of different length have the same."""
    shared = set(read_words(query).stems) & set(read_words(text).stems)
    return 2.0 * len(shared) - 0.01 * len(text) - 6.0


class Logits:
    """An object with raw logits, as a cross-encoder's."""

    name = "logits"
    score_scale: ScoreScale = "logit"

    def score(self, query: str, candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([logit(query, c.text) for c in candidates])


class Cubes:
    """An object with scores from 0 to 1, as Cohere's."""

    name = "cubes"
    score_scale: ScoreScale = "probability"

    def score(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        return [(1.0 / (1.0 + math.exp(-logit(query, c.text)))) ** 3 for c in candidates]


class Nodes(BaseNodePostprocessor):
    """A LlamaIndex reranker."""

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        query = query_bundle.query_str
        scored = [NodeWithScore(node=n.node, score=logit(query, n.node.get_content())) for n in nodes]
        return sorted(scored, key=lambda n: -(n.score or 0.0))


class Documents(BaseDocumentCompressor):
    """A LangChain reranker."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> list[Document]:
        return sorted(documents, key=lambda d: -logit(query, d.page_content))


BROUGHT: dict[str, Callable[[], Any]] = {
    "raw logits": Logits,
    "from 0 to 1": Cubes,
    "of LlamaIndex": Nodes,
    "of LangChain": Documents,
}
"""Makers of rerankers by their kind."""
