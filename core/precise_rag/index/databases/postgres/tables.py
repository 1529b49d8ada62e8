"""The tables of a collection in PostgreSQL, and how rows get into them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from precise_rag._extras import require
from precise_rag.filters.values import compared
from precise_rag.index.arrays.draws import lottery
from precise_rag.index.databases.rows import StoredDocument

_TABLES = """
CREATE TABLE {c}_settings (one int PRIMARY KEY CHECK (one = 1), settings text NOT NULL);
CREATE TABLE {c}_documents (
    key bigserial PRIMARY KEY, id text COLLATE "C" UNIQUE NOT NULL, digest text NOT NULL,
    size int NOT NULL, metadata text NOT NULL, fields jsonb NOT NULL);
CREATE INDEX ON {c}_documents (size);
CREATE INDEX ON {c}_documents USING gin (fields jsonb_path_ops);
CREATE TABLE {c}_sentences (
    key bigserial PRIMARY KEY, document bigint NOT NULL REFERENCES {c}_documents ON DELETE CASCADE,
    place int NOT NULL, start int NOT NULL, stop int NOT NULL, n_tokens int NOT NULL,
    passage_start int NOT NULL, passage_end int NOT NULL, lottery int NOT NULL, text text NOT NULL,
    above text NOT NULL, terms int[] NOT NULL, vector {kind}({d}) NOT NULL, counted bytea NOT NULL);
CREATE INDEX ON {c}_sentences (document, place);
CREATE INDEX ON {c}_sentences (lottery);
CREATE TABLE {c}_postings (
    term int, weight real NOT NULL, sentence bigint, document bigint NOT NULL,
    PRIMARY KEY (term, sentence) INCLUDE (weight, document));
"""
_DOCUMENT = ("key", "id", "digest", "size", "metadata", "fields")
_SENTENCE = (
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
    "above",
    "terms",
    "vector",
    "counted",
)
_POSTING = ("term", "weight", "sentence", "document")


class Tables:
    """The tables of one collection, in a transaction.

    run: executes a statement in it. c: name of the collection.
    """

    def __init__(self, run: Any, c: str) -> None:
        self._run, self._c = run, c

    def exist(self) -> bool:
        """Whether the collection is there."""
        # to_regclass would remember that it was not, even after waiting for the transaction that made it
        query = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid))"
        return bool(self._run(query, [f"{self._c}_settings"]).fetchone()[0])

    def create(self, kind: str, dimension: int) -> None:
        """Make the tables; kind: "vector" or "halfvec", the type of the vectors."""
        self._run("CREATE EXTENSION IF NOT EXISTS vector")
        self._run(_TABLES.format(c=self._c, kind=kind, d=int(dimension)))

    def vector_type(self) -> str:
        """The type of the vectors: "vector" or "halfvec"."""
        query = (
            "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = %s::regclass "
            "AND attname = 'vector'"
        )
        return str(self._run(query, [f"{self._c}_sentences"]).fetchone()[0])

    def lock(self, ids: Sequence[str]) -> None:
        """Let one transaction at a time write each document; in order, so that none waits for another's."""
        self._run(
            "SELECT pg_advisory_xact_lock(hashtext(%s), h) FROM "
            "(SELECT DISTINCT hashtext(i) AS h FROM unnest(%s::text[]) AS i ORDER BY h) AS locks",
            [self._c, list(ids)],
        )

    def remove(self, ids: Sequence[str]) -> None:
        """Delete documents and their rows."""
        self._run(
            f"DELETE FROM {self._c}_postings p USING ("
            f"SELECT s.key, unnest(s.terms) AS term FROM {self._c}_sentences s "
            f"JOIN {self._c}_documents d ON d.key = s.document WHERE d.id = ANY(%s)) AS old "
            "WHERE p.term = old.term AND p.sentence = old.key",
            [list(ids)],
        )
        self._run(f"DELETE FROM {self._c}_documents WHERE id = ANY(%s)", [list(ids)])

    def insert(self, documents: Sequence[StoredDocument]) -> None:
        """Write documents and their rows."""
        keys = self._next("documents", len(documents))
        rows = [
            (key, d.id, d.digest, len(d.sentences), json.dumps(dict(d.metadata)), _fields(d.metadata))
            for key, d in zip(keys, documents, strict=True)
        ]
        self._copy("documents", _DOCUMENT, ("int8", "text", "text", "int4", "text", "jsonb"), rows)
        pairs = [
            (key, i, s) for key, d in zip(keys, documents, strict=True) for i, s in enumerate(d.sentences)
        ]
        drawn = lottery([d.id for d in documents for _ in d.sentences], [place for _, place, _ in pairs])
        self._insert_sentences(pairs, drawn)

    def _insert_sentences(self, pairs: Sequence[tuple[int, int, Any]], drawn: Sequence[int]) -> None:
        pgvector = require("pgvector", extra="postgres")
        if not hasattr(pgvector, "Vector"):  # before 0.4, which langchain-postgres asks for
            pgvector = require("pgvector.psycopg", extra="postgres")
        kind = self.vector_type()
        as_vector = pgvector.Vector if kind == "vector" else pgvector.HalfVector
        keys = self._next("sentences", len(pairs))
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
                number,
                s.text,
                s.above.replace("\0", "\ufffd"),
                s.words.tolist(),
                as_vector(s.vector),
                s.counted,
            )
            for key, number, (document, place, s) in zip(keys, drawn, pairs, strict=True)
        ]
        types = ("int8", "int8", *("int4",) * 7, "text", "text", "int4[]", kind, "bytea")
        self._copy("sentences", _SENTENCE, types, rows)
        postings = [
            (term, weight, key, document)
            for key, (document, _, s) in zip(keys, pairs, strict=True)
            for term, weight in zip(s.words.tolist(), s.weights.tolist(), strict=True)
        ]
        self._copy("postings", _POSTING, ("int4", "float4", "int8", "int8"), postings)

    def _next(self, table: str, n: int) -> list[int]:
        """The next keys of a table."""
        query = "SELECT nextval(pg_get_serial_sequence(%s, 'key')) FROM generate_series(1, %s)"
        return [key for (key,) in self._run(query, [f"{self._c}_{table}", n]).fetchall()]

    def _copy(self, table: str, columns: Sequence[str], types: Sequence[str], rows: Iterable[Any]) -> None:
        cursor = self._run.__self__.cursor()
        with cursor.copy(f"COPY {self._c}_{table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)


def _fields(metadata: Mapping[str, Any]) -> Any:
    return require("psycopg.types.json", extra="postgres").Jsonb(compared(metadata))
