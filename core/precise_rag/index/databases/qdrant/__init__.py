"""Rows in Qdrant, which has no transactions.

    <collection>             a point a sentence: vectors "dense" and "words", and what filters compare
    <collection>_documents   a point a document, without vectors: its head; and one with the settings

A head is one record with the name of the document's present version; rows name their version.

    write    rows of a new version, then the head, then the rows of the old version are deleted
    delete   the head, then the rows
    search   rows, then the heads of the documents that were found; rows of other versions are left out, and
             the search is repeated if one of the versions may not have been complete when it began

A head is the old one or the new one. What a crash leaves are rows of which no head knows: no search returns
them, and `optimize` deletes them.

engine.py    QdrantEngine: the order of writes
view.py      the order of reads
store.py     reads and writes points
records.py   rows and heads
points.py    the same as points
filters.py   filters as Qdrant's
client.py    reads "qdrant:https://host:6333?collection=name"; the client, opened when it is needed
"""

from precise_rag.index.databases.qdrant.engine import QdrantEngine

__all__ = ["QdrantEngine"]
