"""One snapshot of the rows in PostgreSQL, as searches read it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from precise_rag.filters import Filter
from precise_rag.index.databases.counted import HEAD_BYTES, CountedRows, Usual, unpacked, usual
from precise_rag.index.databases.filters import where_clause
from precise_rag.index.ranking import LOTTERY
from precise_rag.types import FloatArray, IntArray

_MOST_POSTINGS = 200_000
"""Entries of `postings` that a search reads; the commonest words of a query are left out if there are more.
The scores of what is found count all words."""
_COMPARED = 50_000
"""Rows that meet a filter up to which all are compared, and not found by the index of the vectors."""
_SENTENCE = (
    "d.id, s.place, s.start, s.stop, s.n_tokens, s.passage_start, s.passage_end, s.text, s.above, d.metadata"
)


class Pool(NamedTuple):
    """The best rows by vector and by words together, each with what scores it.

    keys: (n,) keys of the rows.
    doc_ids: (n,) the documents that they are of.
    passages: (n,) where the passage of each begins.
    dense: (n,) float32 scores by vector.
    counted: the words of the rows.
    """

    keys: Sequence[Any]
    doc_ids: Sequence[str]
    passages: Sequence[int]
    dense: FloatArray
    counted: CountedRows


class FoundSentence(NamedTuple):
    """A row as it is read back: the columns of `_SENTENCE`; see `StoredSentence`.

    place: its number in the document, from 0. metadata: the document's, as JSON.
    """

    doc_id: str
    place: int
    start: int
    end: int
    n_tokens: int
    passage_start: int
    passage_end: int
    text: str
    above: str
    metadata: str


class PostgresView:
    """One snapshot of a collection; a document is in it with all of its rows or none.

    `wanted` is a filter that rows must meet; None for all.

    run: executes a statement in the snapshot. c: the collection.
    """

    def __init__(self, run: Any, c: str) -> None:
        self._run, self._c = run, c
        self._counts: dict[Filter | None, int] = {}
        self._frequency: dict[int, int] = {}

    def count(self, wanted: Filter | None = None) -> int:
        """Number of rows whose documents meet a filter."""
        if wanted not in self._counts:
            clause, values = ("true", []) if wanted is None else where_clause(wanted)
            query = f"SELECT coalesce(sum(d.size), 0) FROM {self._c}_documents d WHERE {clause}"
            self._counts[wanted] = int(self._run(query, values).fetchone()[0])
        return self._counts[wanted]

    def frequencies(self, terms: IntArray) -> tuple[IntArray, int]:
        """In how many rows' sentences each word is, and the number of rows."""
        query = f"SELECT term, count(*) FROM {self._c}_postings WHERE term = ANY(%s) GROUP BY term"
        self._frequency = dict(self._run(query, [terms.tolist()]).fetchall())
        counts = [self._frequency.get(term, 0) for term in terms.tolist()]
        return np.array(counts, dtype=np.int64), self.count()

    def sample(self, n: int, vector: FloatArray, wanted: Filter | None) -> tuple[FloatArray, Usual]:
        """The scores by vector of about `n` rows at most, chosen at random, and what is usual among them."""
        among, values = self._among(wanted, "s")
        count = self.count(wanted)
        limit = LOTTERY if count <= n else int(LOTTERY * n / count)
        query = (
            f"SELECT -(s.vector::vector <#> %s), substring(s.counted FOR {HEAD_BYTES}) "
            f"FROM {self._c}_sentences s WHERE lottery <= %s AND {among}"
        )
        rows = self._run(query, [_as_text(vector), limit, *values], binary=True).fetchall()
        scores = np.array([score for score, _ in rows], dtype=np.float32)
        return scores, usual([head for _, head in rows])

    def pool(
        self, vector: FloatArray, terms: IntArray, idf: FloatArray, size: int, wanted: Filter | None
    ) -> Pool:
        """The `size` best rows by vector, and those by words of which at least one is in the query."""
        direction = _as_text(vector)
        self._run("SELECT set_config('hnsw.ef_search', %s, true)", [str(min(size, 1_000))])
        self._run("SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true)")
        found = self._near(direction, size, wanted)
        read = self._affordable(terms, idf)
        if len(read[0]):
            among, values = self._among(wanted, "p")
            query = (
                f"SELECT p.sentence FROM {self._c}_postings p "
                f"JOIN unnest(%s::int[], %s::real[]) AS q(term, idf) ON p.term = q.term WHERE {among} "
                "GROUP BY p.sentence ORDER BY sum(p.weight * q.idf) DESC LIMIT %s"
            )
            found |= {key for (key,) in self._run(query, [*read, *values, size]).fetchall()}
        query = (
            f"SELECT s.key, d.id, s.passage_start, -(s.vector <#> %s), s.counted FROM {self._c}_sentences s "
            f"JOIN {self._c}_documents d ON d.key = s.document WHERE s.key = ANY(%s) ORDER BY s.key"
        )
        rows = self._run(query, [direction, list(found)], binary=True).fetchall()
        keys, doc_ids, passages, dense, counted = list(zip(*rows, strict=True)) or [()] * 5
        return Pool(keys, doc_ids, passages, np.array(dense, dtype=np.float32), unpacked(counted))

    def read(self, keys: Sequence[Any]) -> list[FoundSentence]:
        """Rows by key, in this order."""
        query = (
            f"SELECT s.key, {_SENTENCE} FROM {self._c}_sentences s "
            f"JOIN {self._c}_documents d ON d.key = s.document WHERE s.key = ANY(%s)"
        )
        by_key = {key: FoundSentence(*rest) for key, *rest in self._run(query, [list(keys)]).fetchall()}
        return [by_key[key] for key in keys]

    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        """For each (document, first, end) the rows whose start, or whose place, is in it, in order."""
        query = (
            f"SELECT r.number, {_SENTENCE} FROM unnest(%s::text[], %s::int[], %s::int[]) WITH ORDINALITY "
            f"AS r(id, low, high, number) JOIN {self._c}_documents d ON d.id = r.id "
            f"JOIN {self._c}_sentences s ON s.document = d.key AND s.{by} >= r.low AND s.{by} < r.high "
            "ORDER BY r.number, s.place"
        )
        of_range: list[list[FoundSentence]] = [[] for _ in ranges]
        columns = [list(column) for column in zip(*ranges, strict=True)]
        for number, *rest in self._run(query, columns).fetchall():
            of_range[number - 1].append(FoundSentence(*rest))
        return of_range

    def metadata(self, doc_id: str) -> Mapping[str, Any] | None:
        """The metadata of a document; None if it is not there."""
        row = self._run(f"SELECT metadata FROM {self._c}_documents WHERE id = %s", [doc_id]).fetchone()
        return None if row is None else json.loads(row[0])

    def fields(self) -> set[str]:
        """The names of all fields in the metadata of documents."""
        query = f"SELECT DISTINCT jsonb_object_keys(fields) FROM {self._c}_documents"
        return {name for (name,) in self._run(query, []).fetchall()}

    def _near(self, direction: str, size: int, wanted: Filter | None) -> set[int]:
        """The best rows by vector. direction: the vector as text."""
        among, values = self._among(wanted, "s")
        query = f"SELECT s.key FROM {self._c}_sentences s WHERE {among} ORDER BY"
        matching = self.count(wanted)
        keys: list[Any] = []
        if wanted is None or matching > _COMPARED:
            near = f"{query} s.vector <#> %s LIMIT %s"
            keys = self._run(near, [*values, direction, size]).fetchall()
        if len(keys) < min(size, matching):  # the index gives up where what matches is rare or far away
            near = f"{query} -(s.vector <#> %s) DESC LIMIT %s"  # in an order that no index has
            keys = self._run(near, [*values, direction, size]).fetchall()
        return {key for (key,) in keys}

    def _among(self, wanted: Filter | None, table: str) -> tuple[str, list[Any]]:
        """A condition on sentences `s`, or on postings `p`, and its values."""
        if wanted is None:
            return "true", []
        clause, values = where_clause(wanted)
        return f"{table}.document IN (SELECT d.key FROM {self._c}_documents d WHERE {clause})", values

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


def _as_text(vector: FloatArray) -> str:
    return json.dumps([round(float(x), 7) for x in vector])
