"""Documents with the arrays of their rows, in shards that never change, as the segments of Lucene.

A new document becomes a shard of its own, and a deleted one is marked in its `Part`. The rest of an index
stays as it is, in memory and on disk. `changed` merges shards now and then, so that they stay few.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.filters import Condition, Filter, field_value
from precise_rag.index.ranking import draws, seeds_of
from precise_rag.types import BoolArray, Document, IntArray
from precise_rag.vectors import offsets_of

Columns = Mapping[str, npt.NDArray[Any]]
"""Arrays by name; the first axis of each is rows. A ragged column x is two arrays: "x.values", all values
one row after another, and "x.lengths", how many values each row has."""
SMALL = 2_000
"""A shard with fewer rows is merged with the next one, and keeps nothing that is deleted."""
FACTOR = 2
"""A shard with fewer than this many times the rows of the next one is merged with it."""
MOST_DELETED = 0.25
"""A shard with a larger share of deleted rows is written again without them."""
_MOST_FILTERS = 64
"""Filters whose documents are remembered."""


def ragged(name: str, rows: Iterable[npt.NDArray[Any]], dtype: npt.DTypeLike) -> dict[str, Any]:
    """The ragged column of a name. rows: the values of each row."""
    rows = [np.zeros(0, dtype), *rows]
    values = np.concatenate(rows, dtype=dtype, casting="unsafe")
    return {f"{name}.values": values, f"{name}.lengths": np.array([*map(len, rows[1:])], dtype=np.int32)}


class _DocumentMatcher:
    """Tells which documents meet a filter. Each field is read once, and compared once per value.

    documents: the documents, in order; they must not change.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._fields: dict[str, tuple[IntArray, list[object]]] = {}
        self._matching: dict[Filter, BoolArray] = {}

    def has(self, field: str) -> bool:
        """Whether a document has the field in its metadata."""
        return self._values(field)[1] != [None]

    def matching(self, wanted: Filter) -> BoolArray:
        """(n_documents,) whether each document meets the filter."""
        mask = self._matching.get(wanted)
        if mask is None:
            nothing = np.zeros(len(self._documents), dtype=np.bool_)
            mask = wanted.fold(
                self._meeting,
                lambda parts: np.logical_and.reduce([~nothing, *parts]),
                lambda parts: np.logical_or.reduce([nothing, *parts]),
            )
            if len(self._matching) >= _MOST_FILTERS:
                self._matching.clear()
            self._matching[wanted] = mask
        return mask

    def _meeting(self, condition: Condition) -> BoolArray:
        numbers, values = self._values(condition.field)
        return np.array([condition.holds(value) for value in values], dtype=np.bool_)[numbers]

    def _values(self, field: str) -> tuple[IntArray, list[object]]:
        """The number of each document's value of a field, and the values by their numbers."""
        if field in self._fields:
            return self._fields[field]
        values = [field_value(document, field) for document in self._documents]
        keys = [(type(v), v) if isinstance(v, str | int | float | None) else i for i, v in enumerate(values)]
        distinct = dict(zip(keys, values, strict=True))
        numbers = {key: number for number, key in enumerate(distinct)}
        column = np.array([numbers[key] for key in keys], dtype=np.int64)
        return self._fields.setdefault(field, (column, [*distinct.values()]))


class Stored(NamedTuple):
    """Where a shard is saved: the folder of the index, and the name, checksum and size of its file."""

    path: Path
    file: str
    sha256: str
    size: int


@dataclass(eq=False)
class Shard:
    """Documents with their rows; they never change.

    offsets: (n_documents + 1,); document i has rows offsets[i] to offsets[i + 1].
    columns: what describes the rows; "spans" (n, 2) and "n_tokens" (n,) are always there.
    derived: arrays made from these, by name, to be saved with them; `kept` adds to them.
    stored: where it was loaded from or last saved; None if nowhere.
    prepared: arrays and tables that the index makes for its searches; None before the first search.
    """

    documents: Sequence[Document]
    offsets: IntArray
    columns: Columns
    derived: dict[str, Columns] = field(default_factory=dict)
    stored: Stored | None = None
    prepared: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(Shard(self.documents, self.offsets, self.columns))

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.offsets[-1])

    @classmethod
    def of(cls, documents: Sequence[Document], rows: Sequence[Columns]) -> Shard:
        """Build the shard of some documents; rows[i] are the columns of documents[i]."""
        return cls(documents, offsets_of([len(columns["spans"]) for columns in rows]), _joined(rows))

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each document by its id."""
        return {document.id: place for place, document in enumerate(self.documents)}

    @cached_property
    def matcher(self) -> _DocumentMatcher:
        """Tells which documents meet a filter."""
        return _DocumentMatcher(self.documents)

    @cached_property
    def draws(self) -> IntArray:
        """(n_rows,) draws of the rows; see `precise_rag.index.ranking.draws`."""
        sizes = np.diff(self.offsets)
        places = np.arange(len(self)) - np.repeat(self.offsets[:-1], sizes)
        return draws(np.repeat(seeds_of(document.id for document in self.documents), sizes), places)

    def owners(self, rows: npt.ArrayLike) -> IntArray:
        """The place of the document that each row belongs to."""
        return np.searchsorted(self.offsets, rows, side="right") - 1

    def kept(self, name: str, make: Callable[[], Columns]) -> Columns:
        """The derived arrays of a name; `make` makes them at the first call."""
        if name not in self.derived:
            self.derived[name] = make()
        return self.derived[name]

    def only(self, kept: BoolArray) -> Shard:
        """Return a shard of the documents for which `kept` (n_documents,) is true."""
        sizes = np.diff(self.offsets)
        rows = np.repeat(kept, sizes)
        columns = {name: column[self._values_of(name, rows)] for name, column in self.columns.items()}
        return Shard(list(compress(self.documents, kept.tolist())), offsets_of(sizes[kept]), columns)

    def _values_of(self, name: str, rows: BoolArray) -> BoolArray:
        """Mask of a column's first axis; a ragged column has several values per row."""
        stem, _, kind = name.rpartition(".")
        return np.repeat(rows, self.columns[f"{stem}.lengths"]) if kind == "values" else rows


@dataclass(frozen=True, eq=False)
class Part:
    """A shard, and which of its documents are not deleted.

    alive: (n_documents,) whether each document is in the index; None for all.
    """

    shard: Shard
    alive: BoolArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"shard": self.shard, "alive": self.alive}  # another thread may be caching the rest

    def __len__(self) -> int:
        """The number of rows that are not deleted."""
        return len(self.shard) - self.n_dead

    @property
    def prepared(self) -> Any:
        """What the index made of the shard for its searches."""
        return self.shard.prepared

    @cached_property
    def rows(self) -> BoolArray | None:
        """(n_rows,) whether each row is not deleted; None for all."""
        return None if self.alive is None else np.repeat(self.alive, np.diff(self.shard.offsets))

    @cached_property
    def n_dead(self) -> int:
        """The number of deleted rows."""
        return 0 if self.rows is None else int(np.count_nonzero(~self.rows))

    @property
    def documents(self) -> Sequence[Document]:
        """The documents that are not deleted, in order."""
        everything = self.shard.documents
        return everything if self.alive is None else list(compress(everything, self.alive.tolist()))

    def get(self, identifier: str) -> Document | None:
        """Return the document with this id, unless it is not here or deleted."""
        place = self.shard.places.get(identifier)
        is_here = place is not None and (self.alive is None or self.alive[place])
        return self.shard.documents[place] if place is not None and is_here else None

    def without(self, ids: Iterable[str]) -> Part:
        """Return the part with these documents deleted; ids that are not here are skipped."""
        places = [self.shard.places[i] for i in ids if i in self.shard.places]
        if not places:
            return self
        alive = np.ones(len(self.shard.documents), dtype=bool) if self.alive is None else self.alive.copy()
        alive[places] = False
        return Part(self.shard, alive)

    def with_metadata(self, new: Mapping[str, Document]) -> Part:
        """Return a part with the rows of the documents that are here and in `new`, with new metadata."""
        is_here = [d.id in new and self.get(d.id) is not None for d in self.shard.documents]
        rows = self.shard.only(np.array(is_here, dtype=np.bool_))
        return Part(Shard([new[document.id] for document in rows.documents], rows.offsets, rows.columns))


def changed(
    parts: Sequence[Part], added: Shard | None, gone: Collection[str], described: Mapping[str, Document]
) -> tuple[Part, ...]:
    """Return the parts of an index after a change, tidied.

    added: new documents; None for none. gone: ids of documents to delete or replace.
    described: documents whose text is known and whose metadata are new, by id.
    """
    copies = [part.with_metadata(described) for part in parts if any(map(part.get, described))]
    left = [part.without({*gone, *described}) for part in parts]
    new = [] if added is None or not added.documents else [Part(added)]
    return _tidied([*left, *copies, *new])


def merged(parts: Sequence[Part]) -> Shard:
    """Return one shard with the documents of several parts, without deleted ones."""
    kept = [part.shard if part.alive is None else part.shard.only(part.alive) for part in parts]
    sizes = np.concatenate([np.diff(shard.offsets) for shard in kept])
    documents = [document for shard in kept for document in shard.documents]
    return Shard(documents, offsets_of(sizes), _joined([b.columns for b in kept if b.columns]))


def _joined(rows: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([columns[name] for columns in rows]) for name in (rows[0] if rows else ())}


def _tidied(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts with small neighbours merged, and without shards that hold too much that is deleted.

    Each row is merged about once each time the index doubles.
    """
    groups: list[list[Part]] = []  # from the last one
    for part in reversed([part for part in parts if part.alive is None or part.alive.any()]):
        group = [part]
        while groups and sum(map(len, group)) < max(SMALL, FACTOR * sum(map(len, groups[-1]))):
            group += groups.pop()
        groups.append(group)
    return tuple(group[0] if _stays(group) else Part(merged(group)) for group in reversed(groups))


def _stays(group: Sequence[Part]) -> bool:
    """Whether a group is one part that need not be written again."""
    part, *others = group
    if others or part.alive is None:
        return not others
    return len(part.shard) >= SMALL and part.n_dead <= MOST_DELETED * len(part.shard)
