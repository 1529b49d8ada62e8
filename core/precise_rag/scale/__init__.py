"""Encoding large collections on several machines, with Ray Data."""

from precise_rag.scale.database import embed_to_database as embed_to_database
from precise_rag.scale.parquet import Progress as Progress
from precise_rag.scale.parquet import embed_to_parquet as embed_to_parquet
