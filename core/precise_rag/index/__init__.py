"""Indexes: they store documents and return scored candidates for a query.

index.py, load.py                   what users call: build, add, search, save, load
sentence_index.py                   the same for kinds that score sentences with their context
dense.py, hybrid.py, sentence_context.py, word_sentence.py   a kind each: its settings, the columns of its
                                    rows, and how rows score
table.py, view.py                   documents in blocks, their changes, and the states that searches read
groups.py, headings.py, words.py, vectors.py, context.py, bm25.py, ranking.py, faiss_rows.py   the columns of
                                    rows, and what is computed with them
folder.py, settings.py              the folder of a saved index: lock, manifest, files
export.py                           vectors for stores of the frameworks
databases/                          the same search over rows in PostgreSQL
"""

from precise_rag.index.databases import DatabaseIndex
from precise_rag.index.dense import DenseIndex
from precise_rag.index.export import WeightedPiece, weighted_chunks, weighted_sentences
from precise_rag.index.groups import Passages
from precise_rag.index.hybrid import HybridIndex, HybridSettings
from precise_rag.index.index import DocumentIndex
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
