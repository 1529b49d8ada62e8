"""A collection in PostgreSQL."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from typing_extensions import override

from precise_rag.errors import InputError
from precise_rag.filters.values import compared
from precise_rag.index.databases.checked import json_object
from precise_rag.index.databases.engine import Engine, StoredDocument, other_version
from precise_rag.index.databases.postgres.connections import Connections
from precise_rag.index.databases.postgres.tables import Tables
from precise_rag.index.databases.postgres.view import PostgresView

_INDEXED_FROM = 20_000
"""Rows from which `optimize` builds an approximate index of the vectors."""
_GRAPH = 800
"""Bytes of a row in the graph of the vectors, beside the vector."""


class PostgresEngine(Engine):
    """A collection in a PostgreSQL database with pgvector 0.8 or newer; see `Engine`.

    location: a connection URI, with "collection=name" among its parameters for another one than "precise",
        and "max_connections=n" for another number of connections than 10; the next thread waits for one.
    A pickle has no password: that of an unpickled engine is in PGPASSWORD or a password file.
    """

    def __init__(self, location: str) -> None:
        self._connections = Connections(location)
        self.location, self._c = self._connections.location, self._connections.collection

    @override
    def settings(self) -> dict[str, Any] | None:
        with self._connections.transaction() as run:
            tables = Tables(run, self._c)
            if not tables.exist():
                return None
            if tables.are_of_another_version():
                drop = f"DROP TABLE {', '.join(tables.names)}"
                raise other_version(self.location, f"run {drop} first, or give another ?collection=name")
            row = run(f"SELECT settings FROM {self._c}_settings").fetchone()
        return None if row is None else json_object("settings", row[0])

    @override
    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        kind = "vector" if settings["settings"]["precision"] == "float32" else "halfvec"
        with self._connections.transaction() as run:
            run("SELECT pg_advisory_xact_lock(hashtext(%s))", [self._c])
            tables = Tables(run, self._c)
            if tables.exist():
                return
            tables.create(kind, dimension)
            run(f"INSERT INTO {self._c}_settings VALUES (1, %s)", [json.dumps(settings)])

    @override
    @contextmanager
    def view(self) -> Iterator[PostgresView]:
        with self._connections.transaction(reads=True) as run:
            yield PostgresView(run, self._c)

    @override
    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        given = None if ids is None else list(ids)
        with self._connections.transaction(reads=True) as run:
            query = f"SELECT id, digest FROM {self._c}_documents WHERE %s::text[] IS NULL OR id = ANY(%s)"
            return dict(run(query, [given, given]).fetchall())

    @override
    def sizes(self) -> dict[str, int]:
        with self._connections.transaction(reads=True) as run:
            return dict(run(f"SELECT id, size FROM {self._c}_documents").fetchall())

    @override
    def write(self, documents: Sequence[StoredDocument]) -> None:
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

    @override
    def describe(self, documents: Sequence[StoredDocument]) -> set[str]:
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

    @override
    def delete(self, ids: Sequence[str]) -> None:
        with self._connections.transaction() as run:
            tables = Tables(run, self._c)
            tables.lock(ids)
            tables.remove(ids)

    @override
    def optimize(self) -> None:
        """Indexes the vectors if there are many rows, and vacuums the tables."""
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
            for table in ("documents", "sentences", "postings"):
                connection.execute(f"VACUUM (ANALYZE) {self._c}_{table}")
            connection.autocommit = False

    @override
    def close(self) -> None:
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
