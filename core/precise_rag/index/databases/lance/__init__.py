"""Rows in LanceDB: a folder, or an object store, read and written without a server.

engine.py    LanceEngine: writes, one commit at a time
rows.py      rows as Arrow tables
counts.py    how many rows have each word, and how they stay those of the rows
view.py      searches in one version
filters.py   filters as SQL
"""

from precise_rag.index.databases.lance.engine import LanceEngine

__all__ = ["LanceEngine"]
