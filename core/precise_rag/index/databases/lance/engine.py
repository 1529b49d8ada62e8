"""Rows in LanceDB: a folder, or an object store, read and written without a server."""

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import filelock
from typing_extensions import override

from precise_rag._extras import require
from precise_rag.errors import DatabaseError, IndexFormatError, PreciseRagError
from precise_rag.index.databases.checked import json_object
from precise_rag.index.databases.engine import Engine, StoredDocument, other_version
from precise_rag.index.databases.lance.counts import (
    EntryReader,
    WordCounts,
    change,
    entries,
    numbers_at,
    numbers_in,
    summed,
)
from precise_rag.index.databases.lance.filters import listed
from precise_rag.index.databases.lance.rows import (
    NONE,
    SETTINGS,
    metadata_columns,
    plain,
    row_schema,
    row_table,
    select,
)
from precise_rag.index.databases.lance.view import LanceView
from precise_rag.redaction import message_of
from precise_rag.types import IntArray

_log = logging.getLogger(__name__)
_ROWS = "rows"
_INDEXED_FROM = 20_000
"""Rows from which `optimize` builds an approximate index of the vectors."""
_CACHE = 2**29
"""Bytes; LanceDB's own defaults are 6 GiB for indexes and 1 GiB for what it knows of files, to which each
version adds."""
_TIDIED_AFTER, _ROWS_FOR_ONE = 200, 200
"""A writer tidies after so many versions, or after one for so many rows if that is more: so the rows that are
written again stay few for each change."""
_VERSIONS_KEPT = timedelta(minutes=10)
"""For searches in other processes, which read the version that they began with."""
_MOST_ENTRIES = 32
"""Entries of counts that are kept one by one."""


class LanceEngine(Engine):
    """A collection in a LanceDB database; see `Engine`.

    A document is replaced in one commit, and a search reads one version. Writers on one machine wait for each
    other; in an object store, let one process write at a time.

    location: a folder that ends in ".lance", or an address that LanceDB knows ("s3://bucket/name.lance").
    nprobes: partitions of the approximate index that a search reads; see `optimize`.
    cache_bytes: what LanceDB may keep of indexes in memory, and a quarter as much of what it knows of files.
    """

    def __init__(self, location: str | Path, *, nprobes: int = 100, cache_bytes: int = _CACHE) -> None:
        self.location = str(location)
        self._nprobes, self._cache_bytes = nprobes, cache_bytes
        self._database: Any = None
        self._process = os.getpid()
        self._counts = EntryReader()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_database": None, "_counts": EntryReader()}

    @override
    def settings(self) -> dict[str, Any] | None:
        with self._errors():
            if "://" not in self.location and not os.path.isdir(self.location):
                return None
            rows = self._found()
            if rows is None:
                return None
            schema = rows.schema
            if SETTINGS not in (schema.metadata or {}):
                raise IndexFormatError(
                    f"{self.location} has a table 'rows' that is no collection of this library; "
                    "give another location"
                )
            if set(schema.names) != set(row_schema(1, b"").names):
                raise other_version(self.location, "delete it first")
            return json_object("settings", schema.metadata[SETTINGS])

    @override
    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        with self._errors(), self._writing():
            if self._found() is not None:
                return
            schema = row_schema(dimension, json.dumps(settings).encode())
            rows = self._connected().create_table(_ROWS, schema=schema)
            rows.create_index("words", config=_word_index())

    @override
    @contextmanager
    def view(self) -> Iterator[LanceView]:
        with self._errors():
            yield LanceView(self._open(), self._counts, self._nprobes)

    @override
    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        where = "place <= 0" if ids is None else f"place <= 0 AND doc_id IN {listed(ids)}"
        with self._errors():
            rows = select(self._open(), where, ["doc_id", "digest"])
        return dict(zip(rows["doc_id"].to_pylist(), rows["digest"].to_pylist(), strict=True))

    @override
    def sizes(self) -> dict[str, int]:
        with self._errors():
            rows = select(self._open(), "place <= 0", ["doc_id", "size"])
        return dict(zip(rows["doc_id"].to_pylist(), rows["size"].to_pylist(), strict=True))

    @override
    def write(self, documents: Sequence[StoredDocument]) -> None:
        with self._errors(), self._writing():
            rows = self._open()
            before = rows.version
            where = f"doc_id IN {listed(d.id for d in documents)}"
            old = select(rows, where, ["doc_id", "place", "words"])
            known = set(old["doc_id"].to_pylist())
            new = [document for document in documents if document.id not in known]
            if new:
                rows.add(_with_entry(rows.schema, new, NONE))
            changed = [document for document in documents if document.id in known]
            if changed:
                _replace(rows, _with_entry(rows.schema, changed, numbers_at(old)), known)
            self._sum_up(rows, _MOST_ENTRIES)
            _tidy(rows, before)

    @override
    def describe(self, documents: Sequence[StoredDocument]) -> set[str]:
        arrow = require("pyarrow", extra="lancedb")
        given = {document.id: document for document in documents}
        with self._errors(), self._writing():
            rows = self._open()
            before = rows.version
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
                _tidy(rows, before)
        return given.keys() - {row["doc_id"] for row in same}

    @override
    def delete(self, ids: Sequence[str]) -> None:
        with self._errors(), self._writing():
            rows = self._open()
            before = rows.version
            where = f"doc_id IN {listed(ids)}"
            old = select(rows, where, ["place", "words"])
            if len(old):
                _drop(rows, where, change(NONE, numbers_at(old)))
                self._sum_up(rows, _MOST_ENTRIES)
                _tidy(rows, before)

    @override
    def optimize(self) -> None:
        """Compacts the files and indexes ids, filters and, if there are many rows, vectors."""
        index = require("lancedb.index", extra="lancedb")
        with self._errors(), self._writing():
            rows = self._open()
            made = {column for entry in rows.list_indices() for column in entry.columns}
            wanted = {"doc_id": index.BTree(), "lottery": index.BTree(), "facets": index.LabelList()}
            wanted["words"] = _word_index()
            if rows.count_rows() >= _INDEXED_FROM:
                # RabitQ is built several times faster than PQ and finds more, but takes whole bytes of bits
                is_whole = rows.schema.field("vector").type.list_size % 8 == 0
                wanted["vector"] = (index.IvfRq if is_whole else index.IvfPq)(distance_type="dot")
            for column, config in wanted.items():
                if column not in made and rows.count_rows():
                    rows.create_index(column, config=config)
            self._sum_up(rows, 1)
            rows.optimize(cleanup_older_than=_VERSIONS_KEPT)

    @override
    def close(self) -> None:
        self._database = None

    def _sum_up(self, rows: Any, most: int) -> None:
        """Replace the entries of the counts by their sum if there are more than `most`."""
        present = self._counts.read(rows)
        if len(present) > most:
            _drop(rows, f"id IN {listed(present)}", summed(list(present.values())))

    def _connected(self) -> Any:
        if self._database is None or self._process != os.getpid():
            self._process = os.getpid()
            lancedb = require("lancedb", extra="lancedb")
            session = lancedb.Session(self._cache_bytes, self._cache_bytes // 4)
            self._database = lancedb.connect(self.location, session=session)
        return self._database

    def _open(self) -> Any:
        return self._connected().open_table(_ROWS)

    def _found(self) -> Any:
        """The table of rows, or None; a crash may leave the folder of one that has no first version."""
        try:
            return self._open()
        except ValueError as error:
            if "was not found" in str(error):
                return None
            raise

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
            raise DatabaseError(f"{self.location}: {message_of(error)}") from error


def _replace(rows: Any, table: Any, ids: Iterable[str]) -> None:
    """Replace all rows of documents in one commit."""
    merge = rows.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.when_not_matched_by_source_delete(f"doc_id IN {listed(ids)}").execute(table)


def _tidy(rows: Any, before: int) -> None:
    """Compact the files and remove old versions, if it is time. before: the version before the change."""
    after = max(_TIDIED_AFTER, rows.count_rows() // _ROWS_FOR_ONE)
    if before // after < rows.version // after:
        try:
            rows.optimize(cleanup_older_than=_VERSIONS_KEPT)
        except (OSError, ValueError, RuntimeError) as error:  # the change is written; a later one tidies
            _log.warning("%s could not be tidied: %s", rows.name, message_of(error))


def _word_index() -> Any:
    return require("lancedb.index", extra="lancedb").FTS(
        base_tokenizer="whitespace",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        with_position=False,
    )


def _drop(rows: Any, where: str, counts: WordCounts) -> None:
    """Delete rows in the commit from which on an entry holds; see `counts`."""
    pair = entries(rows.schema, counts, counts.taken_back())
    rows.add(pair)
    rows.delete(f"{where} OR id IN {listed(pair['id'].to_pylist()[1:])}")


def _with_entry(schema: Any, documents: Sequence[StoredDocument], removed: IntArray) -> Any:
    """The rows of documents and the entry that counts them. removed: words of the rows that they replace."""
    arrow = require("pyarrow", extra="lancedb")
    entry = entries(schema, change(numbers_in(documents), removed))
    return arrow.concat_tables([row_table(schema, documents), entry])
