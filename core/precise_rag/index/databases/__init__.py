"""An index whose rows live in a database.

index.py     DatabaseIndex: adds, deletes, searches
engine.py    what an engine must do, and the values that it stores and returns
search.py    searches in one state of the collection
encoding.py  documents read, encoded and checked
sentences.py a document as rows: weighted vectors and weighted words
document_headings.py, facets.py   headings and metadata as rows have them
location.py  which engine a location such as "my.lance" or "postgresql://…" means

Each engine is a folder: lance, postgres, qdrant.
"""

from precise_rag.index.databases.index import DatabaseIndex
from precise_rag.index.databases.location import is_database

__all__ = ["DatabaseIndex", "is_database"]
