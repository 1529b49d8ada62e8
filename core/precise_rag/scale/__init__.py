"""Encoding large collections on several machines, with Ray Data."""

from precise_rag.scale.database import embed_to_database
from precise_rag.scale.parquet import Progress, embed_to_parquet

__all__ = ["Progress", "embed_to_database", "embed_to_parquet"]
