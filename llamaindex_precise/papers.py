"""Components for a single stage, as the papers describe them; `PreciseRetriever` runs them all.

GradientSelectionPostprocessor   keeps nodes up to the first sharp drop of the score (SAGE)
GreedySemanticNodeParser         joins neighbouring sentences while they are alike (ChunkRAG)
HybridRetriever                  finds sentences by words and by meaning at once
PreciseRerankPostprocessor       scores nodes against the query
RedundancyPostprocessor          drops nodes that repeat a better one (ChunkRAG)
RelevanceFilterPostprocessor     keeps nodes that a language model finds relevant (ChunkRAG)
SentenceContextNodeParser        makes a node of each sentence, its context in its vector (ParetoRAG)
SentenceContextRetriever         finds sentences by meaning, each with its passage (ParetoRAG)
WordSentenceRetriever            finds sentences that share words with the query (recursive retrieval)
"""

from llamaindex_precise.node_parsers import GreedySemanticNodeParser, SentenceContextNodeParser
from llamaindex_precise.postprocessors import (
    GradientSelectionPostprocessor,
    PreciseRerankPostprocessor,
    RedundancyPostprocessor,
)
from llamaindex_precise.relevance import RelevanceFilterPostprocessor
from llamaindex_precise.retrievers import HybridRetriever, SentenceContextRetriever, WordSentenceRetriever

__all__ = [
    "GradientSelectionPostprocessor",
    "GreedySemanticNodeParser",
    "HybridRetriever",
    "PreciseRerankPostprocessor",
    "RedundancyPostprocessor",
    "RelevanceFilterPostprocessor",
    "SentenceContextNodeParser",
    "SentenceContextRetriever",
    "WordSentenceRetriever",
]
