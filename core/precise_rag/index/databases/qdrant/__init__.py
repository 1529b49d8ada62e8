"""Rows in Qdrant.

    <collection>             a point a sentence: vectors "dense" and "words", and what filters compare
    <collection>_documents   a point a document, without vectors: its head; and one with the settings

engine.py    QdrantEngine, and the client of a location
store.py     reads and writes points
points.py    rows and heads as points
filters.py   filters as Qdrant's
"""

from precise_rag.index.databases.qdrant.engine import QdrantEngine

__all__ = ["QdrantEngine"]
