"""Rows in Milvus.

    <collection>             an entity a sentence: vector, weights of its words, and what filters compare
    <collection>_documents   an entity a document: its head; and one with the settings

engine.py     MilvusEngine, and the client of a location
store.py      reads and writes entities
entities.py   rows and heads as entities
filters.py    filters as expressions
"""

from precise_rag.index.databases.milvus.engine import MilvusEngine

__all__ = ["MilvusEngine"]
