"""Rows in LanceDB: a folder, or an object store, read and written without a server."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import filelock
import numpy as np

from precise_rag._extras import require
from precise_rag.errors import DatabaseError, IndexFormatError, PreciseRagError
from precise_rag.index.databases.engine import StoredDocument, other_version
from precise_rag.index.databases.lance.filters import listed
from precise_rag.index.databases.lance.rows import (
    NONE,
    SETTINGS,
    metadata_columns,
    numbers_of,
    plain,
    row_schema,
    row_table,
)
from precise_rag.index.databases.lance.view import LanceView, select
from precise_rag.redaction import said_by
from precise_rag.types import IntArray

_ROWS, _FREQUENCIES = "rows", "frequencies"
_INDEXED_FROM = 20_000
"""Rows from which `optimize` builds an approximate index of the vectors."""
_LAG = 0.02
"""Share of new rows up to which word frequencies of large collections are not read again."""
_SMALL = 200_000
_MOST_CHANGES = 32
"""Changes of word frequencies that are kept one by one, each in a file that searches read."""


class LanceEngine:
    """A collection in a LanceDB database; see `Engine`.

    A document is replaced in one commit, and a search reads one version. Writers on one machine wait for each
    other; in an object store, let one process write at a time.

    location: a folder that ends in ".lance", or an address that LanceDB knows ("s3://bucket/name.lance").
    nprobes: partitions of the approximate index that a search reads; see `optimize`.
    """

    def __init__(self, location: str | Path, *, nprobes: int = 100) -> None:
        self.location = str(location)
        self._nprobes = nprobes
        self._database: Any = None
        self._process = os.getpid()
        self._frequencies: tuple[int, int, IntArray, IntArray] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_database": None, "_frequencies": None}

    def settings(self) -> dict[str, Any] | None:
        """See `Engine`."""
        with self._errors():
            if "://" not in self.location and not os.path.isdir(self.location):
                return None
            if _ROWS not in self._tables():
                return None
            schema = self._open(_ROWS).schema
            if SETTINGS not in (schema.metadata or {}):
                raise IndexFormatError(
                    f"{self.location} has a table 'rows' that is no collection of this library; "
                    "give another location"
                )
            if set(schema.names) != set(row_schema(1, b"").names):
                raise other_version(self.location, "delete it first")
            found: dict[str, Any] = json.loads(schema.metadata[SETTINGS])
            return found

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """See `Engine`."""
        arrow = require("pyarrow", extra="lancedb")
        with self._errors(), self._writing():
            if _ROWS in self._tables():
                return
            schema = row_schema(dimension, json.dumps(settings).encode())
            counts = arrow.schema([("term", arrow.int32()), ("change", arrow.int64())])
            self._connected().create_table(_FREQUENCIES, schema=counts, exist_ok=True)
            rows = self._connected().create_table(_ROWS, schema=schema)
            fts = require("lancedb.index", extra="lancedb").FTS
            rows.create_index(
                "words",
                config=fts(
                    base_tokenizer="whitespace",
                    lower_case=False,
                    stem=False,
                    remove_stop_words=False,
                    ascii_folding=False,
                    with_position=False,
                ),
            )

    @contextmanager
    def view(self) -> Iterator[LanceView]:
        """See `Engine`."""
        with self._errors():
            yield LanceView(self._open(_ROWS), self._present_frequencies, self._nprobes)

    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """See `Engine`."""
        where = "place <= 0" if ids is None else f"place <= 0 AND doc_id IN {listed(ids)}"
        with self._errors():
            found = select(self._open(_ROWS), where, ["doc_id", "digest"])
        return dict(zip(found["doc_id"].to_pylist(), found["digest"].to_pylist(), strict=True))

    def sizes(self) -> dict[str, int]:
        """See `Engine`."""
        with self._errors():
            found = select(self._open(_ROWS), "place <= 0", ["doc_id", "size"])
        return dict(zip(found["doc_id"].to_pylist(), found["size"].to_pylist(), strict=True))

    def write(self, documents: Sequence[StoredDocument]) -> None:
        """See `Engine`."""
        with self._errors(), self._writing():
            rows = self._open(_ROWS)
            old = select(rows, f"doc_id IN {listed(d.id for d in documents)}", ["doc_id", "words"])
            known = set(old["doc_id"].to_pylist())
            new = [document for document in documents if document.id not in known]
            if new:
                rows.add(row_table(rows.schema, new))
            changed = [document for document in documents if document.id in known]
            if changed:
                _replace(rows, row_table(rows.schema, changed), known)
            counted = [np.concatenate([s.words for d in documents for s in d.sentences] or [NONE])]
            self._count(np.concatenate(counted), numbers_of(old["words"]))

    def describe(self, documents: Sequence[StoredDocument]) -> set[str]:
        """See `Engine`."""
        arrow = require("pyarrow", extra="lancedb")
        given = {document.id: document for document in documents}
        with self._errors(), self._writing():
            rows = self._open(_ROWS)
            where = f"place <= 0 AND doc_id IN {listed(given)}"
            old = select(rows, where, ["doc_id", "digest", "metadata"]).to_pylist()
            same = [row for row in old if row["digest"] == given[row["doc_id"]].digest]
            changed = {
                row["doc_id"]: given[row["doc_id"]].metadata
                for row in same
                if row["metadata"] != json.dumps(dict(given[row["doc_id"]].metadata), ensure_ascii=False)
            }
            if changed:
                table = select(rows, f"doc_id IN {listed(changed)}", rows.schema.names)
                owners = table["doc_id"].to_pylist()
                columns = {name: table[name] for name in rows.schema.names}
                columns |= metadata_columns(owners, changed)
                _replace(rows, arrow.table(columns).cast(plain(rows.schema)), changed)
        return given.keys() - {row["doc_id"] for row in same}

    def delete(self, ids: Sequence[str]) -> None:
        """See `Engine`."""
        with self._errors(), self._writing():
            rows = self._open(_ROWS)
            old = select(rows, f"doc_id IN {listed(ids)}", ["words"])
            rows.delete(f"doc_id IN {listed(ids)}")
            self._count(NONE, numbers_of(old["words"]))

    def optimize(self) -> None:
        """See `Engine`. Compacts the files and indexes ids, filters and, if there are many rows, vectors."""
        index = require("lancedb.index", extra="lancedb")
        with self._errors(), self._writing():
            rows = self._open(_ROWS)
            made = {column for entry in rows.list_indices() for column in entry.columns}
            wanted = {"doc_id": index.BTree(), "lottery": index.BTree(), "facets": index.LabelList()}
            if rows.count_rows() >= _INDEXED_FROM:
                # RabitQ is built several times faster than PQ and finds more, but takes whole bytes of bits
                is_whole = rows.schema.field("vector").type.list_size % 8 == 0
                wanted["vector"] = (index.IvfRq if is_whole else index.IvfPq)(distance_type="dot")
            for column, config in wanted.items():
                if column not in made and rows.count_rows():
                    rows.create_index(column, config=config)
            rows.optimize()
            self._sum_up(self._open(_FREQUENCIES))

    def close(self) -> None:
        """See `Engine`."""
        self._database = None

    def _present_frequencies(self, count: int) -> tuple[IntArray, IntArray]:
        """Numbers of all words, ascending, and in how many rows each is; `count`: the number of rows."""
        counts = None
        if self._frequencies is not None:
            version, at, terms, totals = self._frequencies
            if len(terms) > _SMALL:
                is_late = abs(count - at) > _LAG * at
            else:
                counts = self._open(_FREQUENCIES)
                is_late = counts.version != version
            if not is_late:
                return terms, totals
        counts = counts or self._open(_FREQUENCIES)
        terms, totals = _totals(counts)
        self._frequencies = counts.version, count, terms, totals
        return terms, totals

    def _count(self, added: IntArray, removed: IntArray) -> None:
        """Note words that rows have gained and lost."""
        arrow = require("pyarrow", extra="lancedb")
        terms, places = np.unique(np.concatenate([added, removed]), return_inverse=True)
        signs = np.repeat([1, -1], [len(added), len(removed)])
        changes = np.bincount(places, signs, minlength=len(terms)).astype(np.int64)
        kept = changes != 0
        if kept.any():
            table = arrow.table({"term": terms[kept].astype(np.int32), "change": changes[kept]})
            counts = self._open(_FREQUENCIES)
            counts.add(table)
            if counts.version % _MOST_CHANGES == 0:
                self._sum_up(counts)

    def _sum_up(self, counts: Any) -> None:
        """Replace the changes of word frequencies by their sums."""
        arrow = require("pyarrow", extra="lancedb")
        terms, totals = _totals(counts)
        present = totals != 0
        table = arrow.table({"term": terms[present].astype(np.int32), "change": totals[present]})
        self._connected().create_table(_FREQUENCIES, table, mode="overwrite")

    def _connected(self) -> Any:
        if self._database is None or self._process != os.getpid():
            self._process = os.getpid()
            self._database = require("lancedb", extra="lancedb").connect(self.location)
        return self._database

    def _open(self, table: str) -> Any:
        return self._connected().open_table(table)

    def _tables(self) -> list[str]:
        return list(self._connected().list_tables().tables)

    def _writing(self) -> AbstractContextManager[Any]:
        if "://" in self.location:
            return nullcontext()
        Path(self.location).mkdir(parents=True, exist_ok=True)
        return filelock.FileLock(str(Path(self.location) / "precise-rag.lock"))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except PreciseRagError:
            raise
        except (OSError, ValueError, RuntimeError) as error:
            raise DatabaseError(f"{self.location}: {said_by(error)}") from error


def _replace(rows: Any, table: Any, ids: Iterable[str]) -> None:
    """Replace all rows of documents in one commit."""
    merge = rows.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.when_not_matched_by_source_delete(f"doc_id IN {listed(ids)}").execute(table)


def _totals(counts: Any) -> tuple[IntArray, IntArray]:
    table = counts.to_arrow()
    terms, places = np.unique(table["term"].to_numpy().astype(np.int64), return_inverse=True)
    return terms, np.bincount(places, table["change"].to_numpy(), minlength=len(terms)).astype(np.int64)
