"""One version of the rows in LanceDB, as searches read it."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from typing_extensions import override

from precise_rag._extras import require
from precise_rag.filters import Filter
from precise_rag.index.arrays.draws import LOTTERY
from precise_rag.index.databases.checked import DamagedRowError, json_object, texts
from precise_rag.index.databases.engine import FoundSentence, Pool, Sample, View
from precise_rag.index.databases.lance import filters
from precise_rag.index.databases.lance.counts import SENTENCES, WITHOUT_TEXT, EntryReader, WordCounts
from precise_rag.index.databases.lance.rows import (
    READ,
    ScoredRows,
    numbers_of,
    precision_of,
    scored_rows,
    select,
    sentences,
)
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import dots

_ALL_FOUND = 5_000
"""Up to this many rows all are found by vector, if as many are wanted."""


class LanceView(View):
    """One version of the rows; see `View`.

    rows: the table. counts: reads the entries. nprobes: partitions of the approximate index that a search
    reads.
    """

    def __init__(self, rows: Any, counts: EntryReader, nprobes: int) -> None:
        self._rows, self._reader, self._nprobes = rows, counts, nprobes

    @cached_property
    def _entries(self) -> list[WordCounts]:
        """The entries. Raises DamagedRowError if they do not count all rows of the table."""
        entries = list(self._reader.read(self._rows).values())
        counted = sum(int(its.of(np.array([WITHOUT_TEXT, SENTENCES])).sum()) for its in entries)
        present = self._rows.count_rows() - len(entries)
        if counted != present:
            raise DamagedRowError("counts", f"counts {counted} rows where {present} are")
        return entries

    @override
    def count(self) -> int:
        return int(self._totals(np.array([SENTENCES]))[0])

    @override
    def frequencies(self, terms: IntArray, wanted: Filter | None = None) -> tuple[IntArray, int]:
        if wanted is not None:
            rows = select(self._rows, f"place >= 0 AND {filters.where_clause(wanted)}", ["words"])
            places = _places(terms, numbers_of(rows["words"]))
            return np.bincount(places, minlength=len(terms) + 1)[:-1], len(rows)
        return self._totals(terms), self.count()

    @override
    def sample(self, n: int, wanted: Filter | None = None) -> Sample:
        where = "place >= 0" if wanted is None else f"place >= 0 AND {filters.where_clause(wanted)}"
        count = self.count() if wanted is None else self._rows.count_rows(where)
        if count > n:
            where += f" AND lottery < {int(LOTTERY * n / count)}"
        rows = self._scored(select(self._rows, where, ["scoring"])["scoring"])
        return Sample(rows.vectors, rows.counted)

    @override
    def pool(
        self, vector: FloatArray, terms: IntArray, idf: FloatArray, size: int, wanted: Filter | None
    ) -> Pool:
        compute = require("pyarrow.compute", extra="lancedb")
        where = None if wanted is None else filters.where_clause(wanted)
        near = self._rows.search(vector, vector_column_name="vector").distance_type("dot")
        near = near.minimum_nprobes(self._nprobes).maximum_nprobes(0)  # more, if what matches is in others
        keys = _best(near, "_distance", where, size)
        n_rows = self._rows.count_rows()
        if where is None and len(keys) < n_rows <= min(size, _ALL_FOUND):
            raise DamagedRowError("vector", f"has a value in {len(keys)} of {n_rows} rows")
        if len(terms):
            query = require("lancedb.query", extra="lancedb").MatchQuery(" ".join(map(str, terms)), "words")
            by_words = _best(self._rows.search(query, query_type="fts"), "_score", where, size)
            keys = np.union1d(keys, by_words)
        table = self._taken(keys.tolist(), ["doc_id", "place", "scoring"])
        holds_sentence = compute.or_kleene(
            compute.greater_equal(table["place"], 0),
            compute.greater(compute.binary_length(table["scoring"]), 0),
        )
        table = table.filter(holds_sentence)
        rows = self._scored(table["scoring"])
        return Pool(
            table["_rowid"].to_pylist(),
            texts("doc_id", table["doc_id"].to_pylist()),
            rows.passages,
            dots(rows.vectors, vector),
            rows.counted,
        )

    @override
    def read(self, keys: Sequence[Any]) -> list[FoundSentence]:
        if not keys:
            return []
        taken = self._taken(keys, READ)
        by_key = dict(zip(taken["_rowid"].to_pylist(), sentences(taken), strict=True))
        return [by_key[key] for key in keys]

    def _totals(self, terms: IntArray) -> IntArray:
        return sum((its.of(terms) for its in self._entries), np.zeros(len(terms), dtype=np.int64))

    def _scored(self, column: Any) -> ScoredRows:
        schema = self._rows.schema
        return scored_rows(column, schema.field("vector").type.list_size, precision_of(schema))

    def _taken(self, keys: Sequence[Any], columns: Sequence[str]) -> Any:
        return self._rows.take_row_ids(list(keys)).select(list(columns)).with_row_id().to_arrow()

    @override
    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        column = '"start"' if by == "start" else "place"
        parts = [f"(doc_id = {filters.text(i)} AND {column} >= {a} AND {column} < {b})" for i, a, b in ranges]
        rows = sentences(select(self._rows, f"place >= 0 AND ({' OR '.join(parts)})", READ))
        rows.sort(key=lambda row: row.place)
        return [[row for row in rows if row.doc_id == i and a <= getattr(row, by) < b] for i, a, b in ranges]

    @override
    def metadata(self, doc_id: str) -> Mapping[str, Any] | None:
        rows = select(self._rows, f"place <= 0 AND doc_id = {filters.text(doc_id)}", ["metadata"])
        return json_object("metadata", rows["metadata"][0].as_py()) if len(rows) else None

    @override
    def some_metadata(self, most: int) -> list[Mapping[str, Any]]:
        rows = select(self._rows, "place <= 0", ["metadata"], limit=most)
        return [json_object("metadata", metadata) for metadata in rows["metadata"].to_pylist()]

    @override
    def has_field(self, field: str) -> bool:
        return bool(select(self._rows, filters.has_field(field), ["place"], limit=1).num_rows)


def _best(search: Any, score: str, where: str | None, size: int) -> IntArray:
    """The ids of the best rows; score: the column that orders them."""
    if where is not None:
        search = search.where(where, prefilter=True)
    rows = search.limit(size).with_row_id(True).select([score]).to_arrow()
    ids: IntArray = rows["_rowid"].to_numpy().astype(np.int64)
    return ids


def _places(known: IntArray, wanted: IntArray) -> IntArray:
    """Where each of `wanted` is in `known`, which ascends; len(known) if it is not there."""
    if not len(known):
        return np.zeros(len(wanted), dtype=np.int64)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[places] == wanted, places, len(known))
