"""A collection in PostgreSQL."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from precise_rag.checks import check_text
from precise_rag.errors import InputError
from precise_rag.filters.values import compared
from precise_rag.index.databases.postgres.connections import Connections
from precise_rag.index.databases.postgres.tables import Tables
from precise_rag.index.databases.postgres.view import PostgresView
from precise_rag.index.databases.rows import StoredDocument

_INDEXED_FROM = 20_000
"""Rows from which `optimize` builds an approximate index of the vectors."""
_GRAPH = 800
"""Bytes of a row in the graph of the vectors, beside the vector."""


class PostgresEngine:
    """A collection in a PostgreSQL database with pgvector 0.8 or newer.

    Writers in any number of processes may change it at once: of two that write the same document, one wins,
    with all of its rows.

    location: a connection URI, with "collection=name" among its parameters for another one than "precise",
        and "max_connections=n" for another number of connections than 10; the next thread waits for one.
    A pickle has no password: that of an unpickled engine is in PGPASSWORD or a password file.
    """

    def __init__(self, location: str) -> None:
        check_text("location", location)
        if not location.startswith(("postgresql://", "postgres://")):
            raise InputError(
                f"{location!r} is not a database: give postgresql://…; other stores are searched through "
                "LlamaIndex or LangChain, by PreciseRetriever.from_store(store)"
            )
        self._connections = Connections(location)
        self.location, self._c = self._connections.location, self._connections.collection

    def settings(self) -> Any:
        """What `create` was given; None if the collection does not exist."""
        with self._connections.transaction() as run:
            tables = Tables(run, self._c)
            if not tables.exist():
                return None
            row = run(f"SELECT settings FROM {self._c}_settings").fetchone()
        return None if row is None else json.loads(row[0])

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """Make the collection; does nothing if another process has just made it."""
        kind = "vector" if settings["settings"]["precision"] == "float32" else "halfvec"
        with self._connections.transaction() as run:
            run("SELECT pg_advisory_xact_lock(hashtext(%s))", [self._c])
            tables = Tables(run, self._c)
            if tables.exist():
                return
            tables.create(kind, dimension)
            run(f"INSERT INTO {self._c}_settings VALUES (1, %s)", [json.dumps(settings)])

    @contextmanager
    def view(self) -> Iterator[PostgresView]:
        """Open the present state for reading."""
        with self._connections.transaction(reads=True) as run:
            yield PostgresView(run, self._c)

    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """The digests of the documents that are stored, by id; of all documents by default."""
        given = None if ids is None else list(ids)
        with self._connections.transaction(reads=True) as run:
            query = f"SELECT id, digest FROM {self._c}_documents WHERE %s::text[] IS NULL OR id = ANY(%s)"
            return dict(run(query, [given, given]).fetchall())

    def sizes(self) -> dict[str, int]:
        """The number of rows of each document, by id."""
        with self._connections.transaction(reads=True) as run:
            return dict(run(f"SELECT id, size FROM {self._c}_documents").fetchall())

    def write(self, documents: Sequence[StoredDocument]) -> None:
        """Add documents, or replace those with the same ids, all in one transaction."""
        for document in documents:
            if any("\0" in sentence.text for sentence in document.sentences) or "\0" in document.id:
                raise InputError(
                    f"document {document.id!r} holds the character NUL; PostgreSQL cannot store it"
                )
        with self._connections.transaction(vectors=True) as run:
            tables = Tables(run, self._c)
            tables.lock([document.id for document in documents])
            tables.remove([document.id for document in documents])
            tables.insert(documents)

    def describe(self, documents: Sequence[StoredDocument]) -> set[str]:
        """Replace the metadata of documents whose digest is still the same; their rows stay.

        documents: without sentences. Returns the ids of those that another writer has replaced or deleted.
        """
        ids = [document.id for document in documents]
        with self._connections.transaction() as run:
            Tables(run, self._c).lock(ids)
            query = f"SELECT id, digest FROM {self._c}_documents WHERE id = ANY(%s)"
            present = dict(run(query, [ids]).fetchall())
            same = [document for document in documents if present.get(document.id) == document.digest]
            for document in same:
                text = json.dumps(dict(document.metadata))
                run(
                    f"UPDATE {self._c}_documents SET metadata = %s, fields = %s::jsonb "
                    "WHERE id = %s AND metadata <> %s",
                    [text, json.dumps(compared(document.metadata)), document.id, text],
                )
        return {*ids} - {document.id for document in same}

    def delete(self, ids: Sequence[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        with self._connections.transaction() as run:
            tables = Tables(run, self._c)
            tables.lock(ids)
            tables.remove(ids)

    def optimize(self) -> None:
        """Index the vectors if there are many rows, and vacuum the tables."""
        with self._connections.transaction() as run:
            count = run(f"SELECT coalesce(sum(size), 0) FROM {self._c}_documents").fetchone()[0]
            if count >= _INDEXED_FROM:
                kind = Tables(run, self._c).vector_type()
                query = f"SELECT pg_column_size(vector) FROM {self._c}_sentences LIMIT 1"
                _give_memory(run, count * (run(query).fetchone()[0] + _GRAPH) // 1024)
                run(
                    f"CREATE INDEX IF NOT EXISTS {self._c}_near ON {self._c}_sentences "
                    f"USING hnsw (vector {kind}_ip_ops)"
                )
        with self._connections.connection() as connection:
            connection.autocommit = True
            try:
                for table in ("documents", "sentences", "postings"):
                    connection.execute(f"VACUUM (ANALYZE) {self._c}_{table}")
            finally:
                connection.autocommit = False

    def close(self) -> None:
        """End connections."""
        self._connections.close()


def _give_memory(run: Any, kilobytes: int) -> str:
    """Let the transaction build an index in this much memory, up to half of what the server caches in.

    A graph that does not fit takes several times as long. Returns the memory as PostgreSQL writes it.
    """
    query = (
        "SELECT set_config('maintenance_work_mem', greatest(given.setting::bigint, "
        "least(%s, cache.setting::bigint * 8 / 2)) || 'kB', true) FROM pg_settings given, pg_settings cache "
        "WHERE given.name = 'maintenance_work_mem' AND cache.name = 'effective_cache_size'"
    )
    return str(run(query, [kilobytes]).fetchone()[0])
