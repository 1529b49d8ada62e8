"""An index whose rows live in a database.

index.py     DatabaseIndex: adds, deletes, searches
engine.py    what an engine must do, and the values that it stores and returns
sentences.py documents as rows to store: weighted vectors and weighted words
facets.py    metadata as what engines index and compare
location.py  which engine a location such as "my.lance" or "postgresql://…" means

An engine a folder: lance, postgres.
"""

from precise_rag.index.databases.index import DatabaseIndex as DatabaseIndex
from precise_rag.index.databases.location import is_database as is_database
