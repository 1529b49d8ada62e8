"""An index whose rows live in PostgreSQL.

index.py        DatabaseIndex: adds, deletes, searches
rows.py         documents as rows: weighted vectors and weighted words
counted.py      the words of a row as bytes, and their BM25
search.py       searches in one state of the collection
engine.py       the tables, and what changes them
view.py         one snapshot of the tables
filters.py      filters as SQL
connections.py  addresses and connections
"""

from precise_rag.index.databases.index import DatabaseIndex, is_database

__all__ = ["DatabaseIndex", "is_database"]
