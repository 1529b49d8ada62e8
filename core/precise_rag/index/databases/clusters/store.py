"""What a server of rows must do for a collection, and the values that pass between."""

import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from precise_rag.filters import Filter
from precise_rag.index.databases.engine import FoundSentence, Sample, StoredSentence
from precise_rag.types import FloatArray

Query = FloatArray | Mapping[int, float]
"""The vector of a question (d,), or the weights of its words by their numbers."""

_SETTLED = 3_600
"""Seconds after which the rows of a version are all there, if its head is."""


class Head(NamedTuple):
    """A document's record. version: of its rows. digest, size, metadata: see `StoredDocument`."""

    doc_id: str
    version: str
    digest: str
    size: int
    metadata: Mapping[str, Any]


class Row(NamedTuple):
    """A sentence to store. place: its number in the document. metadata: the document's."""

    key: str
    doc_id: str
    version: str
    place: int
    sentence: StoredSentence
    metadata: Mapping[str, Any]


class Hit(NamedTuple):
    """A row that a search found.

    passage: where its passage begins. counted: its words, see `packed`. score: an inner product.
    """

    key: str
    doc_id: str
    version: str
    passage: int
    counted: bytes
    score: float


class Store(Protocol):
    """Two collections on a server: rows and heads. `wanted` is a filter that rows must meet; None for all."""

    location: str

    def settings(self) -> dict[str, Any] | None:
        """See `Engine`."""
        ...

    def create(self, settings: Mapping[str, Any], dimension: int) -> None:
        """See `Engine`."""
        ...

    def heads(self, ids: Iterable[str] | None = None, most: int | None = None) -> dict[str, Head]:
        """The heads of at most `most` documents that have one; of all by default."""
        ...

    def put_heads(self, heads: Sequence[Head]) -> None:
        """Write heads; each takes the place of the document's old one in one step."""
        ...

    def drop_heads(self, ids: Sequence[str]) -> None:
        """Delete heads."""
        ...

    def has_field(self, field: str) -> bool:
        """Whether a document has a field in its metadata."""
        ...

    def put_rows(self, rows: Sequence[Row]) -> None:
        """Write rows. Raises InputError, and writes nothing, if one cannot be stored."""
        ...

    def drop_rows(self, versions: Collection[str]) -> None:
        """Delete the rows of versions."""
        ...

    def versions(self) -> Iterator[str]:
        """The version of each row."""
        ...

    def count(self, wanted: Filter | None = None) -> int:
        """Number of rows."""
        ...

    def frequency(self, term: int, wanted: Filter | None = None) -> int:
        """Number of rows whose sentence has a word."""
        ...

    def sample(self, n: int, wanted: Filter | None = None) -> Sample:
        """About `n` rows at most, chosen at random."""
        ...

    def best(self, query: Query, size: int, wanted: Filter | None, without: Collection[str]) -> list[Hit]:
        """The `size` best rows for a query, best first; without those of some versions."""
        ...

    def scores(self, vector: FloatArray, keys: Sequence[str]) -> dict[str, float]:
        """The scores of rows for the vector of a question, by key."""
        ...

    def read(self, keys: Sequence[str]) -> dict[str, FoundSentence]:
        """Rows by key, without metadata; those that are not there are left out."""
        ...

    def between(
        self, ranges: Sequence[tuple[str, int, int]], by: Literal["start", "place"]
    ) -> list[list[FoundSentence]]:
        """For each (version, first, end) the rows whose start, or whose place, is in it, in order."""
        ...

    def stored(self, version: str) -> list[StoredSentence]:
        """The rows of a version as they were written, in order."""
        ...

    def optimize(self) -> None:
        """See `Engine`."""
        ...

    def close(self) -> None:
        """See `Engine`."""
        ...


def new_version() -> str:
    """A name that no version has had, of 32 characters; it begins with the time."""
    return f"{int(time.time()):010x}{uuid.uuid4().hex[:22]}"


def is_settled(version: str) -> bool:
    """Whether a version is so old that its rows are all there, if its head is; see `ClusterEngine`."""
    return int(version[:10], 16) < time.time() - _SETTLED


def row_key(version: str, place: int) -> str:
    """The key of a row: a UUID."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{version}/{place}"))


def head_key(doc_id: str) -> str:
    """The key of a head: a UUID."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"document {doc_id}"))


def removal(rows: str, heads: str) -> str:
    """How to remove the two collections; see `other_version`."""
    return f"delete the collections {rows} and {heads} first, or give another ?collection=name"
