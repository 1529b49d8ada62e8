"""Indexes: they store documents and return scored candidates for a query.

scheme.py, sentence_scheme.py       what sets kinds apart: the columns of their rows, and how rows score
dense.py, hybrid.py, sentence_context.py, word_sentence.py   a kind each: settings, scheme, class
document_index.py                   a scheme and its documents, saved in a folder
sentence_search.py, sentence_index.py   what a search of sentences takes, and how it is answered in memory
rows/        documents in segments, their changes, and snapshots that searches read
arrays/      the columns and what is computed with them: vectors, words, context, groups
storage/     the folder of a saved index: lock, manifest, checked files
databases/   the same search over rows in PostgreSQL
load.py, export.py                  opening what is saved; vectors for stores of the frameworks
"""

from precise_rag.index.arrays.passages import Passages
from precise_rag.index.databases import DatabaseIndex
from precise_rag.index.dense import DenseIndex
from precise_rag.index.document_index import DocumentIndex
from precise_rag.index.export import WeightedPiece, weighted_chunks, weighted_sentences
from precise_rag.index.hybrid import HybridIndex, HybridSettings
from precise_rag.index.load import load_index
from precise_rag.index.sentence_context import SentenceContextIndex
from precise_rag.index.word_sentence import WordSentenceIndex

__all__ = [
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
