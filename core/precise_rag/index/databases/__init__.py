"""An index whose rows live in PostgreSQL.

index.py     DatabaseIndex: adds, deletes, searches
values.py    rows as they are written and read
search.py    searches in one state of the collection
encoding.py  documents read, encoded and checked
sentences.py a document as rows: weighted vectors and weighted words
document_headings.py   headings as rows have them
postgres/    the tables, and searches in one snapshot of them
"""

from precise_rag.index.databases.index import DatabaseIndex, is_database

__all__ = ["DatabaseIndex", "is_database"]
