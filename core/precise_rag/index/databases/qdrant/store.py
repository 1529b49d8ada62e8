"""Points of a collection in Qdrant, read and written."""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import DatabaseError
from precise_rag.filters import Filter
from precise_rag.index.arrays.draws import LOTTERY, lottery
from precise_rag.index.databases.counted import unpacked
from precise_rag.index.databases.engine import FoundSentence, Sample, StoredSentence, other_version
from precise_rag.index.databases.qdrant import filters, points
from precise_rag.index.databases.qdrant.records import Head, Hit, Row, head_key
from precise_rag.types import FloatArray

Query = FloatArray | Mapping[int, float]
"""The vector of a question (d,), or the weights of its words by their numbers."""

_BATCH = 256
"""Points that are written or read together."""
_SETTINGS = str(uuid.uuid5(uuid.NAMESPACE_OID, "settings"))
_INDEXED = {
    "doc_id": "keyword",
    "version": "keyword",
    "facets": "keyword",
    "words": "integer",
    "place": "integer",
    "start": "integer",
    "lottery": "integer",
}
_FOUND = ["doc_id", "version", "passage", "counted"]
_READ = ["doc_id", "version", "passage", "place", "start", "end", "n_tokens", "text", "above"]


class QdrantStore:
    """Two collections on a server: rows and heads. `wanted` is a filter that rows must meet; None for all.

    client: a QdrantClient. location: for messages. collection: name of the collection. is_local: whether
    the client runs in this process, without indexes.
    """

    def __init__(self, client: Any, location: str, collection: str, *, is_local: bool = False) -> None:
        self._client, self.location, self._is_local = client, location, is_local
        self._rows, self._heads = collection, f"{collection}_documents"

    def settings(self) -> dict[str, Any] | None:
        """What `create` was given; None if the collection does not exist."""
        if not self._client.collection_exists(self._heads):
            return None
        rows, _ = self._client.scroll(self._rows, limit=1, with_payload=[*_READ, "counted"])
        if rows and rows[0].payload.keys() < {*_READ, "counted"}:
            both = f"{self._rows} and {self._heads}"
            remedy = f"delete the collections {both} first, or give another ?collection=name"
            raise other_version(self.location, remedy)
        heads = self._client.retrieve(self._heads, [_SETTINGS])
        return dict(json.loads(heads[0].payload["settings"])) if heads else None

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """Make both collections, unless they are there."""
        models = require("qdrant_client.models", extra="qdrant")
        is_half = settings["settings"]["precision"] == "float16"
        kind = models.Datatype.FLOAT16 if is_half else models.Datatype.FLOAT32
        dense = models.VectorParams(size=dimension, distance=models.Distance.DOT, datatype=kind)
        self._make(self._rows, {"dense": dense}, {"words": models.SparseVectorParams()}, _INDEXED)
        self._make(self._heads, {}, None, {"facets": "keyword"})
        if self.settings() is None:
            point = models.PointStruct(id=_SETTINGS, vector={}, payload={"settings": json.dumps(settings)})
            self._client.upsert(self._heads, [point], wait=True)

    def heads(self, ids: Iterable[str] | None = None, most: int | None = None) -> dict[str, Head]:
        """The heads of at most `most` documents that have one; of all by default."""
        if ids is None:
            read = self._scroll(self._heads, filters.none_of([_is_settings()]), True)
        else:
            keys = [head_key(identifier) for identifier in ids]
            parts = [keys[i : i + _BATCH] for i in range(0, len(keys), _BATCH)]
            read = (point for part in parts for point in self._client.retrieve(self._heads, part))
        heads = map(points.as_head, islice(read, most))
        return {head.doc_id: head for head in heads}

    def put_heads(self, heads: Sequence[Head]) -> None:
        """Write heads; each takes the place of the document's old one in one step."""
        self._put(self._heads, [points.head_point(head) for head in heads])

    def drop_heads(self, ids: Sequence[str]) -> None:
        """Delete heads."""
        if ids:
            self._client.delete(self._heads, [head_key(identifier) for identifier in ids], wait=True)

    def has_field(self, field: str) -> bool:
        """Whether a document has a field in its metadata."""
        heads, _ = self._client.scroll(self._heads, scroll_filter=_all(filters.has_field(field)), limit=1)
        return bool(heads)

    def put_rows(self, rows: Sequence[Row]) -> None:
        """Write rows. Raises InputError, and writes nothing, if one cannot be stored."""
        drawn = lottery([row.doc_id for row in rows], [row.place for row in rows])
        self._put(
            self._rows, [points.row_point(row, number) for row, number in zip(rows, drawn, strict=True)]
        )

    def drop_rows(self, versions: Collection[str]) -> None:
        """Delete the rows of versions."""
        if versions:
            chosen = _all(filters.one_of("version", sorted(versions)))
            self._client.delete(self._rows, chosen, wait=True)

    def versions(self) -> Iterator[str]:
        """The version of each row."""
        return (point.payload["version"] for point in self._scroll(self._rows, None, ["version"]))

    def count(self, wanted: Filter | None = None) -> int:
        """Number of rows."""
        answer = self._client.count(self._rows, count_filter=_all(*_met(wanted)), exact=True)
        return int(answer.count)

    def frequency(self, term: int, wanted: Filter | None = None) -> int:
        """Number of rows whose sentence has a word."""
        chosen = _all(filters.one_of("words", [term]), *_met(wanted))
        return int(self._client.count(self._rows, count_filter=chosen, exact=True).count)

    def sample(self, n: int, wanted: Filter | None = None) -> Sample:
        """About `n` rows at most, chosen at random."""
        count = self.count(wanted)
        limit = LOTTERY if count <= n else int(LOTTERY * n / count)
        chosen = _all(filters.ranged("lottery", lte=limit), *_met(wanted))
        drawn = list(self._scroll(self._rows, chosen, ["counted"], ["dense"]))
        vectors = np.array([point.vector["dense"] for point in drawn], dtype=np.float32)
        return Sample(vectors.reshape(len(drawn), -1 if drawn else 0), unpacked(map(points.counted, drawn)))

    def best(self, query: Query, size: int, wanted: Filter | None, without: Collection[str]) -> list[Hit]:
        """The `size` best rows for a query, best first; without those of some versions."""
        old = [filters.none_of([filters.one_of("version", sorted(without))])] if without else []
        hits = self._query(query, size, _all(*_met(wanted), *old), _FOUND)
        return [
            Hit(p.id, about["doc_id"], about["version"], about["passage"][0], points.counted(p), p.score)
            for p in hits
            if (about := p.payload)
        ]

    def scores(self, vector: FloatArray, keys: Sequence[str]) -> dict[str, float]:
        """The scores of rows for the vector of a question, by key."""
        models = require("qdrant_client.models", extra="qdrant")
        chosen = _all(models.HasIdCondition(has_id=list(keys)))
        return {point.id: point.score for point in self._query(vector, len(keys), chosen, False)}

    def read(self, keys: Sequence[str]) -> dict[str, FoundSentence]:
        """Rows by key, without metadata; those that are not there are left out."""
        points_read = self._client.retrieve(self._rows, list(keys), with_payload=_READ) if keys else []
        return {point.id: points.as_found(point) for point in points_read}

    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        """For each (version, first, end) the rows whose start, or whose place, is in it, in order."""
        if not ranges:
            return []
        parts = [
            filters.all_of([filters.one_of("version", [version]), filters.ranged(by, gte=first, lt=end)])
            for version, first, end in ranges
        ]
        pairs = [
            (point.payload["version"], points.as_found(point))
            for point in self._scroll(self._rows, filters.any_of(parts), _READ)
        ]
        pairs.sort(key=lambda pair: pair[1].place)
        return [
            [row for its, row in pairs if its == version and first <= getattr(row, by) < end]
            for version, first, end in ranges
        ]

    def stored(self, version: str) -> list[StoredSentence]:
        """The rows of a version as they were written, in order."""
        chosen = _all(filters.one_of("version", [version]))
        rows = sorted(self._scroll(self._rows, chosen, True, True), key=lambda p: p.payload["place"])
        return [points.as_stored(point) for point in rows]

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _make(self, name: str, vectors: Any, sparse: Any, indexed: Mapping[str, str]) -> None:
        if not self._client.collection_exists(name):
            try:
                self._client.create_collection(name, vectors_config=vectors, sparse_vectors_config=sparse)
            except DatabaseError:
                if not self._client.collection_exists(name):  # another process has not made it either
                    raise
        for field, kind in indexed.items() if not self._is_local else ():
            self._client.create_payload_index(name, field, field_schema=kind, wait=True)

    def _put(self, name: str, given: Sequence[Any]) -> None:
        for first in range(0, len(given), _BATCH):
            self._client.upsert(name, list(given[first : first + _BATCH]), wait=True)

    def _query(self, query: Query, size: int, chosen: Any, payload: Any) -> list[Any]:
        models = require("qdrant_client.models", extra="qdrant")
        if isinstance(query, Mapping):
            terms = {term: weight for term, weight in query.items() if weight > 0}
            using, asked = "words", models.SparseVector(indices=list(terms), values=list(terms.values()))
        else:
            using, asked = "dense", query.tolist()
        answer = self._client.query_points(
            self._rows, query=asked, using=using, query_filter=chosen, limit=size, with_payload=payload
        )
        return list(answer.points)

    def _scroll(self, name: str, chosen: Any, payload: Any, vectors: Any = False) -> Iterator[Any]:
        offset = None
        while True:
            page, offset = self._client.scroll(
                name,
                scroll_filter=chosen,
                limit=_BATCH,
                offset=offset,
                with_payload=payload,
                with_vectors=vectors,
            )
            yield from page
            if offset is None:
                return


def _all(*parts: Any) -> Any:
    return filters.all_of(parts)


def _met(wanted: Filter | None) -> list[Any]:
    return [] if wanted is None else [filters.qdrant_filter(wanted)]


def _is_settings() -> Any:
    return require("qdrant_client.models", extra="qdrant").HasIdCondition(has_id=[_SETTINGS])
