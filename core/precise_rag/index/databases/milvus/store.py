"""Entities of a collection in Milvus, read and written."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np

from precise_rag.errors import DatabaseError
from precise_rag.filters import Filter
from precise_rag.index.arrays.draws import LOTTERY, lottery
from precise_rag.index.databases.clusters import Head, Hit, Row
from precise_rag.index.databases.clusters.store import Query, head_key, removal
from precise_rag.index.databases.counted import unpacked
from precise_rag.index.databases.engine import FoundSentence, Sample, StoredSentence, other_version
from precise_rag.index.databases.milvus import entities, filters
from precise_rag.index.databases.milvus.entities import quoted
from precise_rag.types import FloatArray

_BATCH = 256
"""Entities that are written or read together."""
_MOST_FOUND = 16_384
"""Entities that a search or a query of Milvus returns at most."""
_SETTINGS = "settings"
_INDEXED = ("doc_id", "version", "place", "begin", "lottery", "words", "facets")
_FOUND = ["doc_id", "version", "passage_start", "counted"]
_COLUMNS = {"start": "begin", "place": "place"}


class MilvusStore:
    """See `Store`.

    client: a MilvusClient. location: for messages. collection: name of the collection. is_lite: whether
    the server is Milvus Lite, which indexes only vectors. The vectors have single precision.
    """

    def __init__(self, client: Any, location: str, collection: str, *, is_lite: bool = False) -> None:
        self._client, self.location, self._is_lite = client, location, is_lite
        self._rows, self._heads = collection, f"{collection}_documents"

    def settings(self) -> dict[str, Any] | None:
        """See `Engine`."""
        if not self._client.has_collection(self._heads):
            return None
        if not self._has_present_fields():
            raise other_version(self.location, removal(self._rows, self._heads))
        for name in (self._rows, self._heads):  # a server that has started again has loaded none
            self._client.load_collection(name)
        found = self._client.query(self._heads, ids=[_SETTINGS], output_fields=["metadata"])
        return dict(json.loads(found[0]["metadata"])) if found else None

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """See `Engine`."""
        schema = entities.row_schema(self._client, dimension)
        self._make(self._rows, schema, _INDEXED)
        self._make(self._heads, entities.head_schema(self._client), ("facets",))
        if self.settings() is None:
            about = entities.head_entity(Head("", "", "", 0, {}))
            self._client.upsert(self._heads, [{**about, "key": _SETTINGS, "metadata": json.dumps(settings)}])

    def heads(self, ids: Iterable[str] | None = None, most: int | None = None) -> dict[str, Head]:
        """See `Store`."""
        if ids is None:
            found = self._each(self._heads, f'key != "{_SETTINGS}"', _HEAD)
        else:
            keys = [head_key(identifier) for identifier in ids]
            parts = [keys[first : first + _BATCH] for first in range(0, len(keys), _BATCH)]
            found = (
                e for part in parts for e in self._client.query(self._heads, ids=part, output_fields=_HEAD)
            )
        heads = map(entities.as_head, islice(found, most))
        return {head.doc_id: head for head in heads}

    def put_heads(self, heads: Sequence[Head]) -> None:
        """See `Store`."""
        self._put(self._heads, [entities.head_entity(head) for head in heads])

    def drop_heads(self, ids: Sequence[str]) -> None:
        """See `Store`."""
        if ids:
            self._client.delete(self._heads, ids=[head_key(identifier) for identifier in ids])

    def has_field(self, field: str) -> bool:
        """See `Store`."""
        return bool(self._client.query(self._heads, filter=filters.has_field(field), limit=1))

    def put_rows(self, rows: Sequence[Row]) -> None:
        """See `Store`."""
        drawn = lottery([row.doc_id for row in rows], [row.place for row in rows])
        pairs = zip(rows, drawn, strict=True)
        self._put(self._rows, [entities.row_entity(row, number) for row, number in pairs])

    def drop_rows(self, versions: Collection[str]) -> None:
        """See `Store`."""
        if versions:
            self._client.delete(self._rows, filter=f"version in {quoted(sorted(versions))}")

    def versions(self) -> Iterator[str]:
        """See `Store`."""
        return (entity["version"] for entity in self._each(self._rows, "place >= 0", ["version"]))

    def count(self, wanted: Filter | None = None) -> int:
        """See `Store`."""
        return self._counted(_met(wanted))

    def frequency(self, term: int, wanted: Filter | None = None) -> int:
        """See `Store`."""
        return self._counted(f"array_contains(words, {int(term)}) and {_met(wanted)}")

    def sample(self, n: int, wanted: Filter | None = None) -> Sample:
        """See `Store`."""
        count = self.count(wanted)
        limit = LOTTERY if count <= n else int(LOTTERY * n / count)
        chosen = f"lottery <= {limit} and {_met(wanted)}"
        found = self._client.query(
            self._rows, filter=chosen, output_fields=["vector", "counted"], limit=min(2 * n, _MOST_FOUND)
        )
        vectors = np.array([entity["vector"] for entity in found], dtype=np.float32)
        return Sample(vectors.reshape(len(found), -1 if found else 0), unpacked(map(entities.counted, found)))

    def best(self, query: Query, size: int, wanted: Filter | None, without: Collection[str]) -> list[Hit]:
        """See `Store`."""
        chosen = _met(wanted)
        if without:
            chosen = f"not (version in {quoted(sorted(without))}) and {chosen}"
        found = self._search(query, min(size, _MOST_FOUND), chosen, _FOUND)
        return [
            Hit(
                key=e["key"],
                doc_id=about["doc_id"],
                version=about["version"],
                passage=about["passage_start"],
                counted=entities.counted(about),
                score=e["distance"],
            )
            for e in found
            if (about := e["entity"])
        ]

    def scores(self, vector: FloatArray, keys: Sequence[str]) -> dict[str, float]:
        """See `Store`."""
        found = self._search(vector, len(keys), f"key in {quoted(keys)}", ["key"])
        return {entity["key"]: entity["distance"] for entity in found}

    def read(self, keys: Sequence[str]) -> dict[str, FoundSentence]:
        """See `Store`."""
        found = self._client.query(self._rows, ids=list(keys), output_fields=entities.READ) if keys else []
        return {entity["key"]: entities.as_found(entity) for entity in found}

    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        """See `Store`."""
        if not ranges:
            return []
        column = _COLUMNS[by]
        parts = [f'(version == "{v}" and {column} >= {a} and {column} < {b})' for v, a, b in ranges]
        found = [
            (entity["version"], entities.as_found(entity))
            for entity in self._each(self._rows, " or ".join(parts), entities.READ)
        ]
        found.sort(key=lambda pair: pair[1].place)
        return [
            [row for its, row in found if its == version and first <= getattr(row, by) < end]
            for version, first, end in ranges
        ]

    def stored(self, version: str) -> list[StoredSentence]:
        """See `Store`."""
        names = [*entities.READ, "words", "vector", "weights", "counted"]
        found = self._each(self._rows, f'version == "{version}"', names)
        return [entities.as_stored(entity) for entity in sorted(found, key=lambda entity: entity["place"])]

    def optimize(self) -> None:
        """See `Engine`. Asks the server to write what it holds in memory."""
        for name in (self._rows, self._heads):
            self._client.flush(name)

    def close(self) -> None:
        """See `Engine`."""
        self._client.close()

    def _has_present_fields(self) -> bool:
        """Whether rows have all fields that this version writes."""
        there = {field["name"] for field in self._client.describe_collection(self._rows)["fields"]}
        return there.issuperset(field.name for field in entities.row_schema(self._client, 2).fields)

    def _make(self, name: str, schema: Any, indexed: Sequence[str]) -> None:
        indexes = self._client.prepare_index_params()
        indexes.add_index("vector", index_type="AUTOINDEX", metric_type="IP")
        if name == self._rows:
            indexes.add_index("weights", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        for field in () if self._is_lite else indexed:
            indexes.add_index(field, index_type="INVERTED")
        if not self._client.has_collection(name):
            try:
                self._client.create_collection(name, schema=schema, consistency_level="Strong")
            except DatabaseError:
                if not self._client.has_collection(name):  # another process has not made it either
                    raise
        self._client.create_index(name, indexes, sync=False)

    def _put(self, name: str, given: Sequence[Any]) -> None:
        for first in range(0, len(given), _BATCH):
            self._client.upsert(name, list(given[first : first + _BATCH]))

    def _search(self, query: Query, size: int, chosen: str, fields: list[str]) -> list[Any]:
        if isinstance(query, Mapping):
            using, asked = "weights", {term: weight for term, weight in query.items() if weight > 0}
        else:
            using, asked = "vector", query.tolist()
        found = self._client.search(
            self._rows,
            data=[asked],
            anns_field=using,
            filter=chosen,
            limit=size,
            output_fields=fields,
            search_params={"metric_type": "IP"},
        )
        return list(found[0])

    def _each(self, name: str, chosen: str, fields: list[str]) -> Iterator[Mapping[str, Any]]:
        """All entities that meet an expression, in the order of their keys."""
        after = ""
        while True:
            found = self._client.query(
                name,
                filter=f'({chosen}) and key > "{after}"',
                output_fields=[*fields, "key"],
                limit=_MOST_FOUND,
            )
            yield from found
            if len(found) < _MOST_FOUND:
                return
            after = max(entity["key"] for entity in found)

    def _counted(self, chosen: str) -> int:
        found = self._client.query(self._rows, filter=chosen, output_fields=["count(*)"])
        return int(found[0]["count(*)"])


_HEAD = ["doc_id", "version", "digest", "size", "metadata"]


def _met(wanted: Filter | None) -> str:
    return "(place >= 0)" if wanted is None else filters.expression(wanted)
