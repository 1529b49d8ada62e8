"""An index whose rows live in PostgreSQL."""

from precise_rag.index.databases.index import DatabaseIndex, is_database

__all__ = ["DatabaseIndex", "is_database"]
