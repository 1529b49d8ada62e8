"""Which engine a location means."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from precise_rag.checks import as_path
from precise_rag.errors import InputError
from precise_rag.index.databases.engine import Engine

_POSTGRES = ("postgresql://", "postgres://")
_QDRANT, _MILVUS = "qdrant:", "milvus:"
LOCATIONS = "NAME.lance, postgresql://… or qdrant:http://…"
"""The forms of a location, for messages."""


def is_database(location: str | Path) -> bool:
    """Whether a location means a database, or is a URL; any other is the folder of an index."""
    text = location if isinstance(location, str) else str(as_path("location", location))
    return text.rstrip("/").endswith(".lance") or text.startswith((_QDRANT, _MILVUS)) or "://" in text


def load_engine(location: str | Path, **options: Any) -> Engine:
    """Return the engine of a location; the database is opened when it is first used.

    location: "folder/name.lance", also in an object store ("s3://bucket/name.lance");
        "postgresql://user@host/database"; "qdrant:https://host:6333". With "?collection=name" for another
        collection than "precise".
    options: of the engine's class.
    Raises InputError for another location.
    """
    text = str(location)
    if text.startswith(_POSTGRES):
        from precise_rag.index.databases.postgres import PostgresEngine

        return PostgresEngine(text, **options)
    if text.startswith(_QDRANT):
        from precise_rag.index.databases.qdrant import QdrantEngine

        return QdrantEngine(text, **options)
    if text.startswith(_MILVUS):
        raise InputError(
            f"{text!r}: Milvus is searched through the store of LlamaIndex or LangChain; pass that store to "
            f"PreciseRetriever.from_store(store), or give {LOCATIONS}"
        )
    if urlsplit(text).path.rstrip("/").endswith(".lance") or text.rstrip("/").endswith(".lance"):
        from precise_rag.index.databases.lance import LanceEngine

        return LanceEngine(text, **options)
    raise InputError(f"{text!r} is not a database; give {LOCATIONS}")
