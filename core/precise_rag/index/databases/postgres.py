"""Rows in PostgreSQL with the extension pgvector.

    <collection>_settings    what the collection was made with
    <collection>_documents   id, digest, number of sentences, metadata, and what filters compare
    <collection>_sentences   place, spans, text, weighted vector, weighted words
    <collection>_postings    the sentences of each word, for the best rows by words

Writes are transactions, and a search reads one snapshot.
"""

import json
import os
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import DatabaseError, InputError
from precise_rag.filters import Filter
from precise_rag.index.databases.engine import FoundSentence, Pool, StoredDocument, filterable
from precise_rag.index.databases.postgres_filters import where_clause
from precise_rag.redaction import remember_fields, said_by, without_password, without_secrets
from precise_rag.types import FloatArray, IntArray, Span

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_LOTTERY = 2**31 - 1
_DIMENSIONS = 2**29 + 1
"""Of the vectors of words: one for each word number."""
_INDEXED_FROM = 20_000
"""Rows from which `optimize` builds an approximate index of the vectors."""
_MOST_POSTINGS = 200_000
"""Entries of `postings` that a search reads; the commonest words of a query are left out if there are more.
The scores of what is found count all words."""

_TABLES = """
CREATE TABLE {c}_settings (one int PRIMARY KEY CHECK (one = 1), settings text NOT NULL);
CREATE TABLE {c}_documents (
    key bigserial PRIMARY KEY, id text COLLATE "C" UNIQUE NOT NULL, digest text NOT NULL,
    size int NOT NULL, metadata text NOT NULL, fields jsonb NOT NULL);
CREATE INDEX ON {c}_documents USING gin (fields jsonb_path_ops);
CREATE TABLE {c}_sentences (
    key bigserial PRIMARY KEY, document bigint NOT NULL REFERENCES {c}_documents ON DELETE CASCADE,
    place int NOT NULL, start int NOT NULL, stop int NOT NULL, n_tokens int NOT NULL,
    passage_start int NOT NULL, passage_end int NOT NULL, lottery int NOT NULL, text text NOT NULL,
    terms int[] NOT NULL, vector {kind}({d}) NOT NULL, words sparsevec NOT NULL);
CREATE INDEX ON {c}_sentences (document, place);
CREATE INDEX ON {c}_sentences (lottery);
CREATE TABLE {c}_postings (
    term int, sentence bigint, weight real NOT NULL, PRIMARY KEY (term, sentence) INCLUDE (weight));
"""
_SENTENCE = "d.id, s.place, s.start, s.stop, s.n_tokens, s.passage_start, s.passage_end, s.text, d.metadata"


class PostgresEngine:
    """A collection in a PostgreSQL database with pgvector 0.8 or newer; see `Engine`.

    location: a connection URI, with "collection=name" among its parameters for another one than "precise".
    A pickle has no password: that of an unpickled engine is in PGPASSWORD or a password file.
    """

    def __init__(self, location: str) -> None:
        public, _ = without_password(location)
        try:
            parts, host = urlsplit(location), urlsplit(str(public)).netloc
        except ValueError as error:
            raise InputError(f"{location!r} is no address of a database: {error}") from None
        options = dict(parse_qsl(parts.query))
        remember_fields(options)
        public_options = without_secrets(options)
        self.location = _address(parts.scheme, host, parts.path, public_options)
        self._c = options.pop("collection", "precise")
        public_options.pop("collection", None)
        if not _NAME.fullmatch(self._c):
            raise InputError(f"collection must be lower-case letters, digits and _, got {self._c!r}")
        user = parts.netloc.rpartition("@")[0].partition(":")[0]
        self._dsn = _address(parts.scheme, parts.netloc, parts.path, options)
        self._public_dsn = _address(
            parts.scheme, f"{user}@{host}" if user else host, parts.path, public_options
        )
        self._start()

    def _start(self) -> None:
        self._idle: list[Any] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._idle)

    def __getstate__(self) -> dict[str, Any]:
        shared = {"_dsn": self._public_dsn, "_public_dsn": self._public_dsn}
        return {"_c": self._c, "location": self.location, **shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def settings(self) -> dict[str, Any] | None:
        """See `Engine`."""
        with self._transaction() as run:
            if run("SELECT to_regclass(%s)", [f"{self._c}_settings"]).fetchone()[0] is None:
                return None
            found = run(f"SELECT settings FROM {self._c}_settings").fetchone()
        return None if found is None else dict(json.loads(found[0]))

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """See `Engine`."""
        kind = "vector" if settings["settings"]["precision"] == "float32" else "halfvec"
        with self._transaction() as run:
            run("SELECT pg_advisory_xact_lock(hashtext(%s))", [self._c])
            if run("SELECT to_regclass(%s)", [f"{self._c}_settings"]).fetchone()[0] is not None:
                return
            run("CREATE EXTENSION IF NOT EXISTS vector")
            run(_TABLES.format(c=self._c, kind=kind, d=int(dimension)))
            run(f"INSERT INTO {self._c}_settings VALUES (1, %s)", [json.dumps(settings)])

    @contextmanager
    def view(self) -> Iterator["_PostgresView"]:
        """See `Engine`."""
        with self._transaction(reads=True) as run:
            yield _PostgresView(run, self._c)

    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """See `Engine`."""
        given = None if ids is None else list(ids)
        with self._transaction(reads=True) as run:
            query = f"SELECT id, digest FROM {self._c}_documents WHERE %s::text[] IS NULL OR id = ANY(%s)"
            return dict(run(query, [given, given]).fetchall())

    def sizes(self) -> dict[str, int]:
        """See `Engine`."""
        with self._transaction(reads=True) as run:
            return dict(run(f"SELECT id, size FROM {self._c}_documents").fetchall())

    def write(self, documents: Sequence[StoredDocument]) -> None:
        """See `Engine`."""
        for document in documents:
            if any("\0" in sentence.text for sentence in document.sentences) or "\0" in document.id:
                raise InputError(
                    f"document {document.id!r} holds the character NUL; PostgreSQL cannot store it"
                )
        with self._transaction(vectors=True) as run:
            self._lock_documents(run, [document.id for document in documents])
            self._remove(run, [document.id for document in documents])
            keys = self._next(run, "documents", len(documents))
            rows = [
                (key, d.id, d.digest, len(d.sentences), json.dumps(dict(d.metadata)), _fields(d.metadata))
                for key, d in zip(keys, documents, strict=True)
            ]
            columns = ("key", "id", "digest", "size", "metadata", "fields")
            self._copy(run, "documents", columns, ("int8", "text", "text", "int4", "text", "jsonb"), rows)
            pairs = [
                (key, i, s) for key, d in zip(keys, documents, strict=True) for i, s in enumerate(d.sentences)
            ]
            self._write_sentences(run, pairs)

    def describe(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        """See `Engine`."""
        with self._transaction() as run:
            self._lock_documents(run, list(metadata))
            for identifier, about in metadata.items():
                text = json.dumps(dict(about))
                run(
                    f"UPDATE {self._c}_documents SET metadata = %s, fields = %s::jsonb "
                    "WHERE id = %s AND metadata <> %s",
                    [text, json.dumps(_clean(about)), identifier, text],
                )

    def delete(self, ids: Sequence[str]) -> None:
        """See `Engine`."""
        with self._transaction() as run:
            self._lock_documents(run, ids)
            self._remove(run, ids)

    def optimize(self) -> None:
        """See `Engine`. Indexes the vectors if there are many rows, and vacuums the tables."""
        with self._transaction() as run:
            count = run(f"SELECT coalesce(sum(size), 0) FROM {self._c}_documents").fetchone()[0]
            if count >= _INDEXED_FROM:
                kind = run(
                    "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = %s::regclass "
                    "AND attname = 'vector'",
                    [f"{self._c}_sentences"],
                ).fetchone()[0]
                run("SET LOCAL maintenance_work_mem = '1GB'")
                run(
                    f"CREATE INDEX IF NOT EXISTS {self._c}_near ON {self._c}_sentences "
                    f"USING hnsw (vector {kind}_ip_ops)"
                )
        with self._connection() as connection:
            connection.autocommit = True
            for table in ("documents", "sentences", "postings"):
                connection.execute(f"VACUUM (ANALYZE) {self._c}_{table}")
            connection.autocommit = False

    def close(self) -> None:
        """See `Engine`."""
        with self._lock:
            _close(self._idle)

    def _write_sentences(self, run: Any, pairs: Sequence[tuple[int, int, Any]]) -> None:
        pgvector = require("pgvector", extra="postgres")
        kind = run(
            "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = %s::regclass "
            "AND attname = 'vector'",
            [f"{self._c}_sentences"],
        ).fetchone()[0]
        as_vector = pgvector.Vector if kind == "vector" else pgvector.HalfVector
        lottery = np.random.default_rng().integers(0, _LOTTERY, len(pairs)).tolist()
        keys = self._next(run, "sentences", len(pairs))
        rows = [
            (
                key,
                document,
                place,
                s.start,
                s.end,
                s.n_tokens,
                s.passage.start,
                s.passage.end,
                drawn,
                s.text,
                s.words.tolist(),
                as_vector(s.vector),
                pgvector.SparseVector(
                    dict(zip(s.terms.tolist(), s.weights.tolist(), strict=True)), _DIMENSIONS
                ),
            )
            for key, drawn, (document, place, s) in zip(keys, lottery, pairs, strict=True)
        ]
        columns = (
            "key",
            "document",
            "place",
            "start",
            "stop",
            "n_tokens",
            "passage_start",
            "passage_end",
            "lottery",
            "text",
            "terms",
            "vector",
            "words",
        )
        types = ("int8", "int8", *("int4",) * 7, "text", "int4[]", kind, "sparsevec")
        self._copy(run, "sentences", columns, types, rows)
        weights = [dict(zip(s.terms.tolist(), s.weights.tolist(), strict=True)) for _, _, s in pairs]
        postings = [
            (term, key, known[term])
            for key, known, (_, _, s) in zip(keys, weights, pairs, strict=True)
            for term in s.words.tolist()
        ]
        self._copy(run, "postings", ("term", "sentence", "weight"), ("int4", "int8", "float4"), postings)

    def _next(self, run: Any, table: str, n: int) -> list[int]:
        """The next keys of a table."""
        query = "SELECT nextval(pg_get_serial_sequence(%s, 'key')) FROM generate_series(1, %s)"
        return [key for (key,) in run(query, [f"{self._c}_{table}", n]).fetchall()]

    def _copy(
        self, run: Any, table: str, columns: Sequence[str], types: Sequence[str], rows: Iterable[Any]
    ) -> None:
        cursor = run.__self__.cursor()
        with cursor.copy(f"COPY {self._c}_{table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _lock_documents(self, run: Any, ids: Sequence[str]) -> None:
        """Let one transaction at a time write each document; in order, so that none waits for another's."""
        run(
            "SELECT pg_advisory_xact_lock(hashtext(%s), h) FROM "
            "(SELECT DISTINCT hashtext(i) AS h FROM unnest(%s::text[]) AS i ORDER BY h) AS locks",
            [self._c, list(ids)],
        )

    def _remove(self, run: Any, ids: Sequence[str]) -> None:
        run(
            f"DELETE FROM {self._c}_postings p USING ("
            f"SELECT s.key, unnest(s.terms) AS term FROM {self._c}_sentences s "
            f"JOIN {self._c}_documents d ON d.key = s.document WHERE d.id = ANY(%s)) AS old "
            "WHERE p.term = old.term AND p.sentence = old.key",
            [list(ids)],
        )
        run(f"DELETE FROM {self._c}_documents WHERE id = ANY(%s)", [list(ids)])

    @contextmanager
    def _transaction(self, reads: bool = False, vectors: bool = False) -> Iterator[Any]:
        """Run statements in one transaction; yields the connection's `execute`."""
        with self._connection() as connection:
            if reads:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if vectors:
                require("pgvector.psycopg", extra="postgres").register_vector(connection)
            yield connection.execute

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        psycopg = require("psycopg", extra="postgres")
        connection = None
        try:
            connection = self._taken() or psycopg.connect(self._dsn)
            yield connection
            connection.commit()
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise DatabaseError(f"{self.location}: {said_by(error)}") from error
        finally:
            if connection is not None:
                self._put_back(psycopg, connection)

    def _taken(self) -> Any:
        with self._lock:
            if self._process != os.getpid():  # connections cannot be shared with the parent
                self._idle.clear()
                self._process = os.getpid()
            return self._idle.pop() if self._idle else None

    def _put_back(self, psycopg: Any, connection: Any) -> None:
        try:
            if not connection.closed:
                connection.rollback()
                with self._lock:
                    self._idle.append(connection)
        except psycopg.Error:
            connection.close()


def _address(scheme: str, netloc: str, path: str, options: Mapping[str, str]) -> str:
    return f"{scheme}://{netloc}{path}{'?' if options else ''}{urlencode(options)}"


def _close(idle: list[Any]) -> None:
    while idle:
        idle.pop().close()


class _PostgresView:
    """One snapshot; see `View`. run: executes a statement in it; c: the collection."""

    def __init__(self, run: Any, c: str) -> None:
        self._run, self._c = run, c
        self._count: int | None = None
        self._frequency: dict[int, int] = {}

    def count(self) -> int:
        if self._count is None:
            found = self._run(f"SELECT coalesce(sum(size), 0) FROM {self._c}_documents").fetchone()
            self._count = int(found[0])
        return self._count

    def frequencies(self, terms: IntArray, wanted: Filter | None = None) -> tuple[IntArray, int]:
        among, values = self._among(wanted)
        count = self.count()
        if wanted is not None:
            query = f"SELECT count(*) FROM {self._c}_sentences s WHERE {among}"
            count = int(self._run(query, values).fetchone()[0])
        query = f"SELECT p.term, count(*) FROM {self._c}_postings p WHERE p.term = ANY(%s) GROUP BY p.term"
        if wanted is not None:
            query = (
                f"SELECT p.term, count(*) FROM {self._c}_postings p JOIN {self._c}_sentences s "
                f"ON s.key = p.sentence WHERE p.term = ANY(%s) AND {among} GROUP BY p.term"
            )
        self._frequency = dict(self._run(query, [terms.tolist(), *values]).fetchall())
        return np.array([self._frequency.get(term, 0) for term in terms.tolist()], dtype=np.int64), count

    def sample(self, n: int, wanted: Filter | None = None) -> FloatArray:
        among, values = self._among(wanted)
        count = self.count()
        if wanted is not None:
            query = f"SELECT count(*) FROM {self._c}_sentences s WHERE {among}"
            count = int(self._run(query, values).fetchone()[0])
        limit = _LOTTERY if count <= n else int(_LOTTERY * n / count)
        query = f"SELECT vector::text FROM {self._c}_sentences s WHERE lottery <= %s AND {among}"
        rows = self._run(query, [limit, *values]).fetchall()
        return np.array([json.loads(row[0]) for row in rows], dtype=np.float32).reshape(
            len(rows), -1 if rows else 0
        )

    def pool(
        self, vector: FloatArray, terms: IntArray, idf: FloatArray, size: int, wanted: Filter | None
    ) -> Pool:
        among, values = self._among(wanted)
        direction = json.dumps([round(float(x), 7) for x in vector])
        self._run("SELECT set_config('hnsw.ef_search', %s, true)", [str(min(size, 1_000))])
        self._run("SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true)")
        query = (
            f"SELECT s.key FROM {self._c}_sentences s WHERE {among} "
            f"ORDER BY s.vector <#> %s::{self._kind()} LIMIT %s"
        )
        keys = {key for (key,) in self._run(query, [*values, direction, size]).fetchall()}
        read = self._affordable(terms, idf)
        if len(read[0]):
            query = (
                f"SELECT p.sentence FROM {self._c}_postings p "
                "JOIN unnest(%s::int[], %s::real[]) AS q(term, idf) ON p.term = q.term "
                + (f"JOIN {self._c}_sentences s ON s.key = p.sentence WHERE {among} " if wanted else "")
                + "GROUP BY p.sentence ORDER BY sum(p.weight * q.idf) DESC LIMIT %s"
            )
            keys |= {key for (key,) in self._run(query, [*read, *values, size]).fetchall()}
        weights = dict(zip(terms.tolist(), idf.tolist(), strict=True))
        sparse = ",".join(f"{t + 1}:{w:.6g}" for t, w in weights.items() if w > 0)  # they count from 1
        query = (
            f"SELECT s.key, d.id, s.passage_start, -(s.vector <#> %s::{self._kind()}), "
            f"-(s.words <#> %s::sparsevec) FROM {self._c}_sentences s "
            f"JOIN {self._c}_documents d ON d.key = s.document WHERE s.key = ANY(%s) ORDER BY s.key"
        )
        rows = self._run(query, [direction, f"{{{sparse}}}/{_DIMENSIONS}", list(keys)]).fetchall()
        columns = list(zip(*rows, strict=True)) or [()] * 5
        return Pool(
            columns[0],
            columns[1],
            np.array(columns[2], dtype=np.int64),
            np.array(columns[3], dtype=np.float32),
            np.array(columns[4], dtype=np.float32),
        )

    def read(self, keys: Sequence[Any]) -> list[FoundSentence]:
        query = (
            f"SELECT s.key, {_SENTENCE} FROM {self._c}_sentences s "
            f"JOIN {self._c}_documents d ON d.key = s.document WHERE s.key = ANY(%s)"
        )
        found = {key: _sentence(rest) for key, *rest in self._run(query, [list(keys)]).fetchall()}
        return [found[key] for key in keys]

    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        query = (
            f"SELECT r.number, {_SENTENCE} FROM unnest(%s::text[], %s::int[], %s::int[]) WITH ORDINALITY "
            f"AS r(id, low, high, number) JOIN {self._c}_documents d ON d.id = r.id "
            f"JOIN {self._c}_sentences s ON s.document = d.key AND s.{by} >= r.low AND s.{by} < r.high "
            "ORDER BY r.number, s.place"
        )
        found: list[list[FoundSentence]] = [[] for _ in ranges]
        columns = [list(column) for column in zip(*ranges, strict=True)]
        for number, *rest in self._run(query, columns).fetchall():
            found[number - 1].append(_sentence(rest))
        return found

    def has_field(self, field: str) -> bool:
        query = f"SELECT EXISTS (SELECT 1 FROM {self._c}_documents WHERE fields ? %s)"
        return bool(self._run(query, [field]).fetchone()[0])

    def _among(self, wanted: Filter | None) -> tuple[str, list[Any]]:
        """A condition on sentences `s`, and its values."""
        if wanted is None:
            return "true", []
        clause, values = where_clause(wanted)
        return f"s.document IN (SELECT d.key FROM {self._c}_documents d WHERE {clause})", values

    def _affordable(self, terms: IntArray, idf: FloatArray) -> tuple[list[int], list[float]]:
        """The rarest words of a query that are in few enough rows together."""
        left = _MOST_POSTINGS
        chosen: list[int] = []
        for place in np.argsort(-idf, kind="stable").tolist():
            frequency = self._frequency.get(int(terms[place]), 0)
            if not frequency or (chosen and frequency > left):
                continue
            left -= frequency
            chosen.append(place)
        return terms[chosen].tolist(), idf[chosen].tolist()

    def _kind(self) -> str:
        query = (
            "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = %s::regclass "
            "AND attname = 'vector'"
        )
        return str(self._run(query, [f"{self._c}_sentences"]).fetchone()[0])


def _sentence(row: Sequence[Any]) -> FoundSentence:
    identifier, place, start, stop, n_tokens, first, last, text, metadata = row
    return FoundSentence(
        identifier, place, start, stop, n_tokens, Span(first, last), text, json.loads(metadata)
    )


def _clean(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What filters compare; without the character NUL, which jsonb cannot hold."""
    text = json.dumps(filterable(metadata))
    return dict(json.loads(text.replace("\\u0000", "\\ufffd")))


def _fields(metadata: Mapping[str, Any]) -> Any:
    return require("psycopg.types.json", extra="postgres").Jsonb(_clean(metadata))
