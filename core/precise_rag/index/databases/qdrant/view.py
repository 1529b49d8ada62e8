"""The order in which a search reads rows and heads; see the package."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from typing_extensions import override

from precise_rag.filters import Filter
from precise_rag.index.databases.counted import unpacked
from precise_rag.index.databases.engine import FoundSentence, Pool, Sample, StateChangedError, View
from precise_rag.index.databases.qdrant.records import Head, Hit, is_settled
from precise_rag.index.databases.qdrant.store import QdrantStore, Query
from precise_rag.types import FloatArray, IntArray

_ATTEMPTS = 10
_MOST_KNOWN = 1_000_000


class QdrantView(View):
    """The documents as their heads say when they are first read; see `View`.

    known: when a search first saw the head of each version; what is seen is added.
    """

    def __init__(self, store: QdrantStore, known: dict[str, float]) -> None:
        self._store, self._known = store, known
        self._heads: dict[str, Head] = {}

    @override
    def count(self) -> int:
        """Rows that are being written or deleted are counted."""
        return self._store.count()

    @override
    def frequencies(self, terms: IntArray, wanted: Filter | None = None) -> tuple[IntArray, int]:
        counts = [self._store.frequency(term, wanted) for term in terms.tolist()]
        return np.array(counts, dtype=np.int64), self._store.count(wanted)

    @override
    def sample(self, n: int, wanted: Filter | None = None) -> Sample:
        return self._store.sample(n, wanted)

    @override
    def pool(
        self, vector: FloatArray, terms: IntArray, idf: FloatArray, size: int, wanted: Filter | None
    ) -> Pool:
        words = dict(zip(terms.tolist(), idf.tolist(), strict=True))
        queries: list[Query] = [vector, words] if words else [vector]
        without = set[str]()
        for _ in range(_ATTEMPTS):
            began = time.monotonic()
            of_query = [self._store.best(query, size, wanted, without) for query in queries]
            hits = {hit.key: hit for hits in of_query for hit in hits}
            self._heads = self._store.heads({hit.doc_id for hit in hits.values()})
            present = {head.version for head in self._heads.values()}
            others = {hit.version for hit in hits.values()} - present
            without |= others
            are_whole = [self._was_whole(version, began) for version in present]
            if all(are_whole) and not others:
                return self._pooled(vector, list(hits.values()), of_query[0])
        raise StateChangedError

    @override
    def read(self, keys: Sequence[Any]) -> list[FoundSentence]:
        rows = self._store.read(keys)
        if len(rows) < len(set(keys)):
            raise StateChangedError
        return [self._described(rows[key]) for key in keys]

    @override
    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        ids = {doc_id for doc_id, _, _ in ranges}
        self._heads |= self._store.heads(ids - self._heads.keys())
        there = [(doc_id, first, end) for doc_id, first, end in ranges if doc_id in self._heads]
        rows = self._store.between([(self._heads[i].version, a, b) for i, a, b in there], by)
        now = self._store.heads(ids)
        if any(name not in now or now[name].version != self._heads[name].version for name, _, _ in there):
            raise StateChangedError
        of_range = dict(zip(there, rows, strict=True))
        return [[self._described(row) for row in of_range.get(wanted, ())] for wanted in ranges]

    @override
    def metadata(self, doc_id: str) -> Mapping[str, Any] | None:
        if doc_id not in self._heads:
            self._heads |= self._store.heads([doc_id])
        return self._heads[doc_id].metadata if doc_id in self._heads else None

    @override
    def some_metadata(self, most: int) -> list[Mapping[str, Any]]:
        return [head.metadata for head in self._store.heads(most=most).values()]

    @override
    def has_field(self, field: str) -> bool:
        return self._store.has_field(field)

    def _was_whole(self, version: str, began: float) -> bool:
        """Whether all rows of a present version were there when a search began; notes the version."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        return self._known.setdefault(version, time.monotonic()) < began or is_settled(version)

    def _pooled(self, vector: FloatArray, hits: Sequence[Hit], near: Sequence[Hit]) -> Pool:
        """The rows with what scores them; near: those that were found by vector."""
        known = {hit.key: hit.score for hit in near}
        missing = [hit.key for hit in hits if hit.key not in known]
        known |= self._store.scores(vector, missing) if missing else {}
        return Pool(
            [hit.key for hit in hits],
            [hit.doc_id for hit in hits],
            np.array([hit.passage for hit in hits], dtype=np.int64),
            np.array([known.get(hit.key, 0.0) for hit in hits], dtype=np.float32),
            unpacked([hit.counted for hit in hits]),
        )

    def _described(self, row: FoundSentence) -> FoundSentence:
        return row._replace(metadata=self._heads[row.doc_id].metadata)
