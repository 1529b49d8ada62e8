"""Indexes: they store documents and return scored candidates for a query."""

from precise_rag.index.arrays.passages import Passages as Passages
from precise_rag.index.bm25 import BM25Index as BM25Index
from precise_rag.index.databases import DatabaseIndex as DatabaseIndex
from precise_rag.index.dense import DenseIndex as DenseIndex
from precise_rag.index.document_index import DocumentIndex as DocumentIndex
from precise_rag.index.export import WeightedPiece as WeightedPiece
from precise_rag.index.export import weighted_chunks as weighted_chunks
from precise_rag.index.export import weighted_sentences as weighted_sentences
from precise_rag.index.hybrid import HybridIndex as HybridIndex
from precise_rag.index.hybrid import HybridSettings as HybridSettings
from precise_rag.index.load import load_index as load_index
from precise_rag.index.sentence_context import SentenceContextIndex as SentenceContextIndex
from precise_rag.index.word_sentence import WordSentenceIndex as WordSentenceIndex
