"""Rows in LanceDB: a folder, or an object store, read and written without a server."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import filelock
import numpy as np

from precise_rag._extras import require
from precise_rag.errors import DatabaseError, PreciseRagError
from precise_rag.filters import Condition, Filter
from precise_rag.index.databases.engine import (
    FoundSentence,
    Pool,
    StoredDocument,
    filterable,
    words_score,
)
from precise_rag.redaction import said_by
from precise_rag.types import FloatArray, IntArray, Span

_ROWS, _FREQUENCIES, _SETTINGS = "rows", "frequencies", b"precise-rag"
_READ = ("doc_id", "place", "start", "end", "n_tokens", "passage_start", "passage_end", "text", "metadata")
_POOLED = ("doc_id", "passage_start", "vector", "terms", "weights")
_LOTTERY = 2**31 - 1
_INDEXED_FROM = 50_000
"""Rows from which `optimize` builds an approximate index of the vectors."""
_LAG = 0.02
"""Share of new rows up to which word frequencies of large collections are not read again."""
_SMALL = 200_000


class LanceEngine:
    """A collection in a LanceDB database; see `Engine`.

    A document is replaced in one commit, and a search reads one version. Writers on one machine wait for each
    other; in an object store, let one process write at a time.

    location: a folder that ends in ".lance", or an address that LanceDB knows ("s3://bucket/name.lance").
    nprobes: partitions of the approximate index that a search reads; see `optimize`.
    """

    def __init__(self, location: str | Path, *, nprobes: int = 64) -> None:
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
            metadata = self._open(_ROWS).schema.metadata or {}
            found: dict[str, Any] | None = json.loads(metadata[_SETTINGS]) if _SETTINGS in metadata else None
            return found

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """See `Engine`."""
        arrow = require("pyarrow", extra="lancedb")
        kind = arrow.float32() if settings["settings"]["precision"] == "float32" else arrow.float16()
        with self._errors(), self._writing():
            if _ROWS in self._tables():
                return
            columns: list[tuple[str, Any]] = [
                *((name, arrow.string()) for name in ("id", "doc_id")),
                *((name, arrow.int32()) for name in ("place", "size", "start", "end", "n_tokens")),
                *((name, arrow.int32()) for name in ("passage_start", "passage_end", "lottery")),
                *((name, arrow.string()) for name in ("text", "words", "metadata", "digest")),
                ("terms", arrow.list_(arrow.int32())),
                ("weights", arrow.list_(arrow.float16())),
                ("vector", arrow.list_(kind, dimension)),
                ("facets", arrow.list_(arrow.string())),
                ("fields", arrow.json_(arrow.utf8())),
            ]
            about = {_SETTINGS: json.dumps(settings).encode()}
            counts = arrow.schema([("term", arrow.int32()), ("change", arrow.int64())])
            self._connected().create_table(_FREQUENCIES, schema=counts, exist_ok=True)
            rows = self._connected().create_table(_ROWS, schema=arrow.schema(columns, metadata=about))
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
    def view(self) -> Iterator["_LanceView"]:
        """See `Engine`."""
        with self._errors():
            yield _LanceView(self, self._open(_ROWS))

    def digests(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """See `Engine`."""
        where = "place <= 0" if ids is None else f"place <= 0 AND doc_id IN {_listed(ids)}"
        with self._errors():
            found = _select(self._open(_ROWS), where, ["doc_id", "digest"])
        return dict(zip(found["doc_id"].to_pylist(), found["digest"].to_pylist(), strict=True))

    def sizes(self) -> dict[str, int]:
        """See `Engine`."""
        with self._errors():
            found = _select(self._open(_ROWS), "place <= 0", ["doc_id", "size"])
        return dict(zip(found["doc_id"].to_pylist(), found["size"].to_pylist(), strict=True))

    def write(self, documents: Sequence[StoredDocument]) -> None:
        """See `Engine`."""
        with self._errors(), self._writing():
            rows = self._open(_ROWS)
            old = _select(rows, f"doc_id IN {_listed(d.id for d in documents)}", ["doc_id", "words"])
            known = set(old["doc_id"].to_pylist())
            new = [document for document in documents if document.id not in known]
            if new:
                rows.add(_table(rows.schema, new))
            changed = [document for document in documents if document.id in known]
            if changed:
                _replace(rows, _table(rows.schema, changed), known)
            counted = [np.concatenate([s.words for d in documents for s in d.sentences] or [_NONE])]
            self._count(np.concatenate(counted), _numbers(old["words"]))

    def describe(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        """See `Engine`."""
        arrow = require("pyarrow", extra="lancedb")
        with self._errors(), self._writing():
            rows = self._open(_ROWS)
            given = {name: json.dumps(dict(about), ensure_ascii=False) for name, about in metadata.items()}
            old = _select(rows, f"place <= 0 AND doc_id IN {_listed(given)}", ["doc_id", "metadata"])
            pairs = zip(old["doc_id"].to_pylist(), old["metadata"].to_pylist(), strict=True)
            changed = {name for name, about in pairs if about != given[name]}
            if not changed:
                return
            table = _select(rows, f"doc_id IN {_listed(changed)}", rows.schema.names)
            owners = table["doc_id"].to_pylist()
            columns = {name: table[name] for name in rows.schema.names}
            columns["metadata"] = arrow.array([given[name] for name in owners])
            columns["facets"] = arrow.array(
                [_facets(metadata[name]) for name in owners], arrow.list_(arrow.string())
            )
            columns["fields"] = _json_column([_typed(metadata[name]) for name in owners])
            _replace(rows, arrow.table(columns).cast(_plain(rows.schema)), changed)

    def delete(self, ids: Sequence[str]) -> None:
        """See `Engine`."""
        with self._errors(), self._writing():
            rows = self._open(_ROWS)
            old = _select(rows, f"doc_id IN {_listed(ids)}", ["words"])
            rows.delete(f"doc_id IN {_listed(ids)}")
            self._count(_NONE, _numbers(old["words"]))

    def optimize(self) -> None:
        """See `Engine`. Compacts the files and indexes ids, filters and, if there are many rows, vectors."""
        index = require("lancedb.index", extra="lancedb")
        with self._errors(), self._writing():
            rows = self._open(_ROWS)
            made = {column for entry in rows.list_indices() for column in entry.columns}
            wanted = {"doc_id": index.BTree(), "lottery": index.BTree(), "facets": index.LabelList()}
            if rows.count_rows() >= _INDEXED_FROM:
                wanted["vector"] = index.IvfPq(distance_type="dot")
            for column, config in wanted.items():
                if column not in made and rows.count_rows():
                    rows.create_index(column, config=config)
            rows.optimize()
            counts = self._open(_FREQUENCIES)
            if counts.count_rows():
                terms, totals = _totals(counts)
                arrow = require("pyarrow", extra="lancedb")
                table = arrow.table({"term": terms.astype(np.int32), "change": totals})
                self._connected().create_table(_FREQUENCIES, table, mode="overwrite")

    def close(self) -> None:
        """See `Engine`."""
        self._database = None

    def frequencies(self, count: int) -> tuple[IntArray, IntArray]:
        """Numbers of all words, ascending, and in how many rows each is; `count`: the number of rows."""
        counts = self._open(_FREQUENCIES)
        if self._frequencies is not None:
            version, at, terms, totals = self._frequencies
            is_late = abs(count - at) > _LAG * at if len(terms) > _SMALL else counts.version != version
            if not is_late:
                return terms, totals
        terms, totals = _totals(counts)
        self._frequencies = counts.version, count, terms, totals
        return terms, totals

    @property
    def nprobes(self) -> int:
        """See the class."""
        return self._nprobes

    def _count(self, added: IntArray, removed: IntArray) -> None:
        """Note words that rows have gained and lost."""
        arrow = require("pyarrow", extra="lancedb")
        terms, places = np.unique(np.concatenate([added, removed]), return_inverse=True)
        signs = np.repeat([1, -1], [len(added), len(removed)])
        changes = np.bincount(places, signs, minlength=len(terms)).astype(np.int64)
        kept = changes != 0
        if kept.any():
            table = arrow.table({"term": terms[kept].astype(np.int32), "change": changes[kept]})
            self._open(_FREQUENCIES).add(table)

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


_NONE = np.zeros(0, dtype=np.int64)


class _LanceView:
    """One version of the rows; see `View`."""

    def __init__(self, engine: LanceEngine, rows: Any) -> None:
        self._engine = engine
        self._rows = rows

    def count(self) -> int:
        n_rows: int = self._rows.count_rows()
        return n_rows if n_rows > 1_000 else int(self._rows.count_rows("place >= 0"))

    def frequencies(self, terms: IntArray, wanted: Filter | None = None) -> tuple[IntArray, int]:
        if wanted is not None:
            found = _select(self._rows, f"place >= 0 AND {_where(wanted)}", ["words"])
            return np.bincount(_places(terms, _numbers(found["words"])), minlength=len(terms) + 1)[:-1], len(
                found
            )
        count = self.count()
        known, totals = self._engine.frequencies(count)
        places = _places(known, terms)
        return np.append(totals, 0)[places], count

    def sample(self, n: int, wanted: Filter | None = None) -> FloatArray:
        where = "place >= 0" if wanted is None else f"place >= 0 AND {_where(wanted)}"
        count = self.count() if wanted is None else self._rows.count_rows(where)
        if count > n:
            where += f" AND lottery < {int(_LOTTERY * n / count)}"
        return _vectors(_select(self._rows, where, ["vector"])["vector"])

    def pool(
        self, vector: FloatArray, terms: IntArray, idf: FloatArray, size: int, wanted: Filter | None
    ) -> Pool:
        arrow = require("pyarrow", extra="lancedb")
        where = "place >= 0" if wanted is None else f"place >= 0 AND {_where(wanted)}"
        near = self._rows.search(vector, vector_column_name="vector").distance_type("dot")
        found = [_pooled(near.nprobes(self._engine.nprobes), where, size)]
        if len(terms):
            query = require("lancedb.query", extra="lancedb").MatchQuery(" ".join(map(str, terms)), "words")
            found.append(_pooled(self._rows.search(query, query_type="fts"), where, size))
        table = arrow.concat_tables(found)
        _, first = np.unique(table["_rowid"].to_numpy(), return_index=True)
        table = table.take(first).combine_chunks()
        lists = table["terms"].combine_chunks()
        weights = table["weights"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return Pool(
            table["_rowid"].to_pylist(),
            table["doc_id"].to_pylist(),
            table["passage_start"].to_numpy(),
            _vectors(table["vector"]) @ vector,
            words_score(
                lists.flatten().to_numpy(),
                weights.astype(np.float32),
                lists.value_lengths().to_numpy(),
                terms,
                idf,
            ),
        )

    def read(self, keys: Sequence[Any]) -> list[FoundSentence]:
        if not keys:
            return []
        found = self._rows.take_row_ids(list(keys)).select(list(_READ)).with_row_id().to_arrow()
        by_key = dict(zip(found["_rowid"].to_pylist(), _sentences(found), strict=True))
        return [by_key[key] for key in keys]

    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        column = '"start"' if by == "start" else "place"
        parts = [f"(doc_id = {_text(i)} AND {column} >= {a} AND {column} < {b})" for i, a, b in ranges]
        found = _sentences(_select(self._rows, f"place >= 0 AND ({' OR '.join(parts)})", _READ))
        found.sort(key=lambda row: row.place)
        return [[row for row in found if row.doc_id == i and a <= getattr(row, by) < b] for i, a, b in ranges]

    def has_field(self, field: str) -> bool:
        return bool(_select(self._rows, _has(field), ["place"], limit=1).num_rows)


def _select(table: Any, where: str, columns: Sequence[str], limit: int | None = None) -> Any:
    return table.search().where(where).select(list(columns)).limit(limit).to_arrow()


def _pooled(search: Any, where: str, size: int) -> Any:
    found = search.where(where, prefilter=True).limit(size).with_row_id(True)
    with_score = "_score" if type(found).__name__ == "LanceFtsQueryBuilder" else "_distance"
    return found.select([*_POOLED, with_score]).to_arrow().select([*_POOLED, "_rowid"])


def _replace(rows: Any, table: Any, ids: Iterable[str]) -> None:
    """Replace all rows of documents in one commit."""
    merge = rows.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.when_not_matched_by_source_delete(f"doc_id IN {_listed(ids)}").execute(table)


def _table(schema: Any, documents: Sequence[StoredDocument]) -> Any:
    """The rows of documents as Arrow; a document without text has one row, with place -1."""
    arrow = require("pyarrow", extra="lancedb")
    dimension = schema.field("vector").type.list_size
    kind = np.float32 if schema.field("vector").type.value_type == arrow.float32() else np.float16
    pairs = [(d, i, s) for d in documents for i, s in enumerate(d.sentences)]
    empty = [document for document in documents if not document.sentences]
    n = len(pairs)
    owners = [document for document, _, _ in pairs] + empty
    about = {d.id: (json.dumps(dict(d.metadata), ensure_ascii=False), _facets(d.metadata)) for d in documents}
    fields = {document.id: _typed(document.metadata) for document in documents}
    places = [place for _, place, _ in pairs] + [-1] * len(empty)
    numbers = {
        "start": [s.start for _, _, s in pairs],
        "end": [s.end for _, _, s in pairs],
        "n_tokens": [s.n_tokens for _, _, s in pairs],
        "passage_start": [s.passage.start for _, _, s in pairs],
        "passage_end": [s.passage.end for _, _, s in pairs],
    }
    vectors = np.zeros((len(owners), dimension), dtype=kind)
    if n:
        vectors[:n] = np.stack([s.vector for _, _, s in pairs])
    ends = np.cumsum([0, *(len(s.terms) for _, _, s in pairs), *(0 for _ in empty)]).astype(np.int32)
    terms = np.concatenate([_NONE, *(s.terms for _, _, s in pairs)]).astype(np.int32)
    weights = np.concatenate([np.zeros(0), *(s.weights for _, _, s in pairs)]).astype(np.float16)
    rng = np.random.default_rng()
    columns = {
        "id": [f"{d.id}\n{place}" for d, place in zip(owners, places, strict=True)],
        "doc_id": [document.id for document in owners],
        "place": places,
        "size": [len(document.sentences) for document in owners],
        **{name: values + [0] * len(empty) for name, values in numbers.items()},
        "lottery": rng.integers(0, _LOTTERY, len(owners)),
        "text": [s.text for _, _, s in pairs] + [""] * len(empty),
        "words": [" ".join(map(str, s.words.tolist())) for _, _, s in pairs] + [""] * len(empty),
        "metadata": [about[document.id][0] for document in owners],
        "digest": [document.digest for document in owners],
        "terms": arrow.ListArray.from_arrays(ends, terms),
        "weights": arrow.ListArray.from_arrays(ends, arrow.array(weights, arrow.float16())),
        "vector": arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.ravel()), dimension),
        "facets": arrow.array([about[document.id][1] for document in owners], arrow.list_(arrow.string())),
        "fields": _json_column([fields[document.id] for document in owners]),
    }
    return arrow.table({name: columns[name] for name in schema.names}).cast(_plain(schema))


def _plain(schema: Any) -> Any:
    """The schema for data that is written: JSON is text there."""
    arrow = require("pyarrow", extra="lancedb")
    fields = [arrow.field(f.name, arrow.json_(arrow.utf8())) if f.name == "fields" else f for f in schema]
    return arrow.schema(fields)


def _json_column(values: Sequence[str]) -> Any:
    arrow = require("pyarrow", extra="lancedb")
    return arrow.ExtensionArray.from_storage(arrow.json_(arrow.utf8()), arrow.array(values, arrow.utf8()))


def _sentences(table: Any) -> list[FoundSentence]:
    columns = (table[name].to_pylist() for name in _READ)
    return [
        FoundSentence(doc_id, place, start, end, n_tokens, Span(first, last), text, json.loads(metadata))
        for doc_id, place, start, end, n_tokens, first, last, text, metadata in zip(*columns, strict=True)
    ]


def _vectors(column: Any) -> FloatArray:
    """(n, d) float32 vectors of a column."""
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    vectors: FloatArray = flat.astype(np.float32).reshape(len(column), column.type.list_size)
    return vectors


def _numbers(column: Any) -> IntArray:
    """The numbers in a column of texts, one after another."""
    return np.array(" ".join(column.to_pylist()).split(), dtype=np.int64)


def _totals(counts: Any) -> tuple[IntArray, IntArray]:
    table = counts.to_arrow()
    terms, places = np.unique(table["term"].to_numpy().astype(np.int64), return_inverse=True)
    return terms, np.bincount(places, table["change"].to_numpy(), minlength=len(terms)).astype(np.int64)


def _places(known: IntArray, wanted: IntArray) -> IntArray:
    """Where each of `wanted` is in `known`, which ascends; len(known) if it is not there."""
    if not len(known):
        return np.zeros(len(wanted), dtype=np.int64)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[places] == wanted, places, len(known))


def _facets(metadata: Mapping[str, Any]) -> list[str]:
    """What fields have which values, as texts that a label index knows."""
    found = []
    for field, value in filterable(metadata).items():
        found.append(json.dumps([field]))
        if isinstance(value, list):
            found.extend(json.dumps([field, [_canonical(item)]]) for item in value)
        elif not isinstance(value, dict):
            found.append(json.dumps([field, _canonical(value)]))
    return sorted(set(found))


def _typed(metadata: Mapping[str, Any]) -> str:
    """JSON of the numbers and strings in the metadata, by the type and the name of each field."""
    found: dict[str, float | str] = {}
    for field, value in filterable(metadata).items():
        if isinstance(value, str):
            found[f"text {field}"] = value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"number {field}"] = float(value)
    return json.dumps(found)


def _canonical(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _listed(values: Iterable[str]) -> str:
    return f"({', '.join(map(_text, values)) or 'NULL'})"


def _where(wanted: Filter) -> str:
    return wanted.fold(
        _clause, lambda p: f"({' AND '.join(p) or 'true'})", lambda p: f"({' OR '.join(p) or 'false'})"
    )


def _has(field: str) -> str:
    return f"array_has_any(facets, [{_text(json.dumps([field]))}])"


def _clause(condition: Condition) -> str:
    is_id = condition.field == "$id"
    present = "true" if is_id else _has(condition.field)
    if condition.operator == "$exists":
        return f"(NOT {present})" if condition.negated else present
    holds = _of_id(condition) if is_id else _of_field(condition)
    return (
        f"({present} AND NOT coalesce({holds}, false))" if condition.negated else f"coalesce({holds}, false)"
    )


_COMPARED = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def _of_id(condition: Condition) -> str:
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        return "false"
    if condition.operator in _COMPARED:
        return f"(doc_id {_COMPARED[condition.operator]} {_text(texts[0])})"
    return (
        f"contains(doc_id, {_text(texts[0])})"
        if condition.operator == "$contains"
        else f"(doc_id IN {_listed(texts)})"
    )


def _of_field(condition: Condition) -> str:
    field, value = condition.field, condition.value
    text = f"json_get_string(fields, {_text(f'text {field}')})"
    if condition.operator in _COMPARED:
        sign = _COMPARED[condition.operator]
        if isinstance(value, str):
            return f"({text} {sign} {_text(value)})"
        return f"(json_get_float(fields, {_text(f'number {field}')}) {sign} CAST({value!r} AS DOUBLE))"
    if condition.operator == "$contains":
        listed = f"array_has_any(facets, [{_text(json.dumps([field, [_canonical(value)]]))}])"
        return f"({listed} OR contains({text}, {_text(value)}))" if isinstance(value, str) else listed
    values = value if isinstance(value, tuple) else (value,)
    if not values:
        return "false"
    labels = ", ".join(_text(json.dumps([field, _canonical(item)])) for item in values)
    return f"array_has_any(facets, [{labels}])"
