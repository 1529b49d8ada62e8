"""Rows in PostgreSQL with the extension pgvector.

    <collection>_settings    what the collection was made with
    <collection>_documents   id, digest, number of sentences, metadata, and what filters compare
    <collection>_sentences   place, spans, text, weighted vector, weighted words
    <collection>_postings    the sentences of each word, for the best rows by words

Writes are transactions, and a search reads one snapshot.

engine.py        PostgresEngine
connections.py   addresses, connections and transactions
tables.py        the tables, and how rows get into them
view.py          searches in one snapshot
filters.py       filters as SQL
"""

from precise_rag.index.databases.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
