"""Indexes: they store documents and return scored candidates for a query."""

from precise_rag.index.arrays.passages import Passages
from precise_rag.index.bm25 import BM25Index
from precise_rag.index.databases import DatabaseIndex
from precise_rag.index.dense import DenseIndex
from precise_rag.index.document_index import DocumentIndex
from precise_rag.index.export import WeightedPiece, weighted_chunks, weighted_sentences
from precise_rag.index.hybrid import HybridIndex, HybridSettings
from precise_rag.index.load import load_index
from precise_rag.index.sentence_context import SentenceContextIndex
from precise_rag.index.word_sentence import WordSentenceIndex

__all__ = [
    "BM25Index",
    "DatabaseIndex",
    "DenseIndex",
    "DocumentIndex",
    "HybridIndex",
    "HybridSettings",
    "Passages",
    "SentenceContextIndex",
    "WeightedPiece",
    "WordSentenceIndex",
    "load_index",
    "weighted_chunks",
    "weighted_sentences",
]
