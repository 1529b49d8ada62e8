"""Components for a single stage, as the papers describe them; `PreciseRetriever` runs them all.

CompressorInput               the input of a compressor as a Runnable
GradientSelectionCompressor   keeps documents up to the first sharp drop of the score (SAGE)
GreedySemanticTextSplitter    joins neighbouring sentences while they are alike (ChunkRAG)
HybridRetriever               finds sentences by words and by meaning at once
RedundancyCompressor          drops documents that repeat a better one (ChunkRAG)
RelevanceFilterCompressor     keeps documents that a language model finds relevant (ChunkRAG)
RerankCompressor              scores documents against the query
SentenceContextRetriever      finds sentences by meaning, each with its passage (ParetoRAG)
SentenceContextTextSplitter   makes a document of each sentence, its context in its vector (ParetoRAG)
WordSentenceRetriever         finds sentences that share words with the query (recursive retrieval)
"""

from langchain_precise.compressors import (
    CompressorInput,
    GradientSelectionCompressor,
    RedundancyCompressor,
    RerankCompressor,
)
from langchain_precise.relevance import RelevanceFilterCompressor
from langchain_precise.retrievers import HybridRetriever, SentenceContextRetriever, WordSentenceRetriever
from langchain_precise.text_splitters import GreedySemanticTextSplitter, SentenceContextTextSplitter

__all__ = [
    "CompressorInput",
    "GradientSelectionCompressor",
    "GreedySemanticTextSplitter",
    "HybridRetriever",
    "RedundancyCompressor",
    "RelevanceFilterCompressor",
    "RerankCompressor",
    "SentenceContextRetriever",
    "SentenceContextTextSplitter",
    "WordSentenceRetriever",
]
