"""A collection in PostgreSQL: its address and connections, its tables, and what changes them.

    <collection>_settings    what the collection was made with
    <collection>_documents   id, digest, number of sentences, metadata, and what filters compare
    <collection>_sentences   place, spans, text, weighted vector, weighted words
    <collection>_postings    the sentences of each word, for the best rows by words

Changes are transactions, and a search reads one snapshot.
"""

import atexit
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from precise_rag._data import packaged_text
from precise_rag._extras import require
from precise_rag._processes import PerProcess, ProcessLock
from precise_rag.checks import check_text
from precise_rag.errors import DatabaseError, InputError
from precise_rag.filters.values import compared
from precise_rag.index.databases.filters import unescaped_json
from precise_rag.index.databases.rows import StoredDocument
from precise_rag.index.databases.view import PostgresView
from precise_rag.redaction import quoted, remember_fields, without_password, without_secrets

_TABLES = packaged_text("index/databases/tables.sql")
_VECTOR_TYPES = {"float32": "vector", "float16": "halfvec"}
_INDEXED_FROM = 20_000
"""Rows from which `optimize` builds an approximate index of the vectors."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_MOST = "10"
"""Connections of a process to one address, if the address does not say."""
_WAIT = 30.0
"""Seconds that a thread waits for a connection."""
_CONNECT = "10"
"""Seconds after which a server that does not answer is given up, if neither address nor environment says."""
_IDLE = 60.0
"""Seconds after which one of the connections is ended, if so many were not used meanwhile."""
_CONNECTION = {"client_encoding": "utf8", "prepare_threshold": None}
"""Texts also in a database without an encoding, and no state that a pooler gives to the next client."""
_connecting: PerProcess[dict[tuple[str, str], ProcessLock]] = PerProcess()
"""Locks of this process, by address and number of connections: one that hangs holds up no other."""
_pools: PerProcess[dict[tuple[str, str], Any]] = PerProcess()
"""The pools of this process, by address and number of connections."""


class PostgresEngine:
    """A collection in a PostgreSQL database with pgvector 0.8 or newer.

    Writers in any number of processes may change it at once: of two that write the same document, one wins,
    with all of its rows.

    The engines of a process at one address share their connections, in any number of threads. A pickle has
    no password: that of an unpickled engine is in PGPASSWORD or a password file.

    location: a connection URI, with "collection=name" among its parameters for another collection than
        "precise", and "max_connections=n" for another number of connections than 10; the next thread waits
        for one. After it is made, `location` is the address without passwords.
    """

    def __init__(self, location: str) -> None:
        check_text("location", location)
        if not location.startswith(("postgresql://", "postgres://")):
            raise InputError(
                f"{location!r} is not a database: give postgresql://…; other stores are searched through "
                "LlamaIndex or LangChain, by PreciseRetriever.from_store(store)"
            )
        public, _ = without_password(location, user_is_key=False)
        try:
            parts, host = urlsplit(location), urlsplit(str(public)).netloc
        except ValueError as error:
            raise InputError(
                f"{location!r} is not a database URL ({error}); use postgresql://user@host/name"
            ) from None
        options = dict(parse_qsl(parts.query))
        remember_fields(options)
        self.location = _address(parts.scheme, host, parts.path, without_secrets(options))
        self._c = options.pop("collection", "precise")
        self._most = options.pop("max_connections", _MOST)
        if not re.fullmatch("[1-9][0-9]{0,4}", self._most):
            raise InputError(f"max_connections must be a whole number from 1, got {self._most!r}")
        if not _NAME.fullmatch(self._c):
            raise InputError(f"collection must be lower-case letters, digits and _, got {self._c!r}")
        options.setdefault("connect_timeout", os.environ.get("PGCONNECT_TIMEOUT", _CONNECT))
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        login = f"{user}:{password}" if password else user
        self._dsn = _address(parts.scheme, f"{login}@{host}" if login else host, parts.path, options)
        public_host = f"{user}@{host}" if user else host
        self._public_dsn = _address(parts.scheme, public_host, parts.path, without_secrets(options))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dsn": self._public_dsn}

    def close(self) -> None:
        """End the connections, also for other indexes of this address; the next use opens new ones."""
        pool = _pools.get(dict).pop((self._dsn, self._most), None)
        if pool is not None:
            pool.close()

    @contextmanager
    def snapshot(self) -> Iterator[Any]:
        """Lend a connection that reads one state of the database, and changes nothing."""
        with self.connection() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Lend a connection in a transaction, which is undone if anything is raised."""
        psycopg = require("psycopg", extra="postgres")
        try:
            with self._pool().connection() as connection:
                yield connection
        except require("psycopg_pool", extra="postgres").PoolTimeout as error:
            raise DatabaseError(
                f"{self.location}: no connection was free for {_WAIT:g} seconds: {self._refusal()}"
            ) from error
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise DatabaseError(f"{self.location}: {quoted(error)}") from error

    def _pool(self) -> Any:
        pools = _pools.get(dict)
        key = self._dsn, self._most
        with _connecting.get(dict).setdefault(key, ProcessLock()):
            if key not in pools:
                pool = require("psycopg_pool", extra="postgres").ConnectionPool
                # a pool would only say that it got no connection in time, and not why
                require("psycopg", extra="postgres").connect(self._dsn).close()
                pools[key] = pool(
                    self._dsn,
                    kwargs=_CONNECTION,
                    min_size=0,
                    max_size=int(self._most),
                    open=True,
                    check=pool.check_connection,
                    timeout=_WAIT,
                    max_idle=_IDLE,
                    reconnect_timeout=_WAIT,
                )
            return pools[key]

    def _refusal(self) -> str:
        """Why no connection was free: what the server says to one more, or that all were in use."""
        psycopg = require("psycopg", extra="postgres")
        try:
            psycopg.connect(self._dsn).close()
        except psycopg.Error as error:
            return quoted(error)
        return (
            f"all {self._most} were in use; use fewer threads, or let the address end with max_connections=…"
        )

    def settings(self) -> Any:
        """What `create` was given; None if the collection does not exist."""
        with self.connection() as db:
            query = f"SELECT settings FROM {self._c}_settings"
            row = db.execute(query).fetchone() if self._exists(db) else None
        return None if row is None else json.loads(row[0])

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """Make the collection; does nothing if another process has just made it."""
        kind = _VECTOR_TYPES[settings["settings"]["precision"]]
        with self.connection() as db:
            db.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [self._c])
            if not self._exists(db):
                db.execute("CREATE EXTENSION IF NOT EXISTS vector")
                db.execute(_TABLES.format(c=self._c, kind=kind, d=int(dimension)))
                db.execute(f"INSERT INTO {self._c}_settings VALUES (1, %s)", [json.dumps(settings)])

    @contextmanager
    def view(self) -> Iterator[PostgresView]:
        """Open the present state for reading."""
        with self.snapshot() as db:
            yield PostgresView(db.execute, self._c)

    def digests(self, ids: Iterable[str]) -> dict[str, str]:
        """The digests of those of the documents that are stored, by id."""
        with self.snapshot() as db:
            query = f"SELECT id, digest FROM {self._c}_documents WHERE id = ANY(%s)"
            return dict(db.execute(query, [list(ids)]).fetchall())

    def ids(self) -> tuple[str, ...]:
        """The ids of all documents, in no order."""
        with self.snapshot() as db:
            return tuple(key for (key,) in db.execute(f"SELECT id FROM {self._c}_documents").fetchall())

    def write(self, documents: Sequence[StoredDocument]) -> None:
        """Add documents, or replace those with the same ids, all in one transaction."""
        with self.connection() as db:
            self._remove(db, [document.id for document in documents])
            self._insert(db, documents)

    def describe(self, documents: Sequence[StoredDocument]) -> set[str]:
        """Replace the metadata of documents whose digest is still the same; their rows stay.

        documents: without sentences. Returns the ids of those that another writer has replaced or deleted.
        """
        ids = [document.id for document in documents]
        with self.connection() as db:
            self._lock(db, ids)
            query = f"SELECT id, digest FROM {self._c}_documents WHERE id = ANY(%s)"
            present = dict(db.execute(query, [ids]).fetchall())
            same = [document for document in documents if present.get(document.id) == document.digest]
            for document in same:
                text = json.dumps(dict(document.metadata))
                db.execute(
                    f"UPDATE {self._c}_documents SET metadata = %s, fields = %s::jsonb "
                    "WHERE id = %s AND metadata <> %s",
                    [text, unescaped_json(compared(document.metadata)), document.id, text],
                )
        return {*ids} - {document.id for document in same}

    def delete(self, ids: Sequence[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        with self.connection() as db:
            self._remove(db, ids)

    def optimize(self) -> None:
        """Index the vectors if there are many rows, and vacuum the tables.

        The index is built in the server's `maintenance_work_mem`, which "options=-c maintenance_work_mem=8GB"
        in the location sets; a large one is built several times as fast if it fits in there.
        """
        kind = _VECTOR_TYPES[self.settings()["settings"]["precision"]]
        with self.connection() as db:
            count = db.execute(f"SELECT coalesce(sum(size), 0) FROM {self._c}_documents").fetchone()[0]
            if count >= _INDEXED_FROM:
                db.execute(
                    f"CREATE INDEX IF NOT EXISTS {self._c}_near ON {self._c}_sentences "
                    f"USING hnsw (vector {kind}_ip_ops)"
                )
        with self.connection() as connection:
            connection.autocommit = True
            try:
                for table in ("documents", "sentences", "postings"):
                    connection.execute(f"VACUUM (ANALYZE) {self._c}_{table}")
            finally:
                connection.autocommit = False

    def _exists(self, db: Any) -> bool:
        # to_regclass would remember that it was not, even after waiting for the transaction that made it
        query = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid))"
        return bool(db.execute(query, [f"{self._c}_settings"]).fetchone()[0])

    def _lock(self, db: Any, ids: Sequence[str]) -> None:
        """Let one transaction at a time write each document; in order, so that none waits for another's."""
        db.execute(
            "SELECT pg_advisory_xact_lock(hashtext(%s), h) FROM "
            "(SELECT DISTINCT hashtext(i) AS h FROM unnest(%s::text[]) AS i ORDER BY h) AS locks",
            [self._c, list(ids)],
        )

    def _remove(self, db: Any, ids: Sequence[str]) -> None:
        self._lock(db, ids)
        db.execute(
            f"DELETE FROM {self._c}_postings p USING ("
            f"SELECT s.key, unnest(s.terms) AS term FROM {self._c}_sentences s "
            f"JOIN {self._c}_documents d ON d.key = s.document WHERE d.id = ANY(%s)) AS old "
            "WHERE p.term = old.term AND p.sentence = old.key",
            [list(ids)],
        )
        db.execute(f"DELETE FROM {self._c}_documents WHERE id = ANY(%s)", [list(ids)])

    def _insert(self, db: Any, documents: Sequence[StoredDocument]) -> None:
        keys = self._next_keys(db, "documents", len(documents))
        sentence_keys = iter(self._next_keys(db, "sentences", sum(len(d.sentences) for d in documents)))
        rows: dict[str, list[Sequence[Any]]] = {"documents": [], "sentences": [], "postings": []}
        for key, document in zip(keys, documents, strict=True):
            size, metadata = len(document.sentences), dict(document.metadata)
            fields = unescaped_json(compared(metadata))
            rows["documents"].append((key, document.id, document.digest, size, json.dumps(metadata), fields))
            for place, sentence in enumerate(document.sentences):
                sentence_key = next(sentence_keys)
                rows["sentences"].append((sentence_key, key, place, *sentence[:-1]))
                weights = zip(sentence.terms, sentence.weights, strict=True)
                rows["postings"] += [(term, weight, sentence_key, key) for term, weight in weights]
        for table, its in rows.items():
            with db.cursor().copy(f"COPY {self._c}_{table} FROM STDIN") as copy:
                for row in its:
                    copy.write_row(row)

    def _next_keys(self, db: Any, table: str, n: int) -> list[int]:
        query = "SELECT nextval(pg_get_serial_sequence(%s, 'key')) FROM generate_series(1, %s)"
        return [key for (key,) in db.execute(query, [f"{self._c}_{table}", n]).fetchall()]


def _address(scheme: str, netloc: str, path: str, options: Mapping[str, str]) -> str:
    query = urlencode(options, quote_via=quote)  # libpq reads no "+" as a space
    return f"{scheme}://{netloc}{path}{'?' if query else ''}{query}"


@atexit.register
def _close_all() -> None:
    """End the connections of this process; their threads cannot be ended once the interpreter stops."""
    for pool in _pools.get(dict).values():
        pool.close()
