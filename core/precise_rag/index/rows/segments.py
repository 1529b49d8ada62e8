"""Segments: documents that were indexed together, in arrays that never change, as in Lucene.

A new document becomes a segment of its own, and a deleted one is marked in its `Part`. The rest of the index
stays as it is, in memory and on disk. `tidied` merges segments now and then, so that they stay few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as SizedIterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.collection import BoolArray, Collection, Columns
from precise_rag.index.arrays.draws import draws, seeds_of
from precise_rag.index.arrays.faiss_rows import FaissRows
from precise_rag.index.arrays.heading_columns import HeadingTexts
from precise_rag.index.arrays.words import Vocabulary, joined_words
from precise_rag.index.rows.matching import DocumentMatcher
from precise_rag.types import Document, IntArray

SMALL = 2_000
"""A segment with fewer rows is merged with the next one, and keeps nothing that is deleted."""
FACTOR = 2
"""A segment with fewer than this many times the rows of the next one is merged with it."""
MOST_DELETED = 0.25
"""A segment with a larger share of deleted rows is written again without them."""


class Stored(NamedTuple):
    """Where a segment is saved: the folder of the index, and the name, checksum and size of its file."""

    path: Path
    file: str
    sha256: str
    size: int


@dataclass(eq=False)
class Segment:
    """Documents with their rows; they never change.

    collection: documents and rows.
    words: the vocabulary that numbers the words in its columns.
    extras: arrays to save that are not columns of the rows, by name; `kept` adds to them.
    stored: where it was loaded from or last saved; None if nowhere.
    prepared: arrays for searches, computed by the index from the rows; None before the first search.
    near: finds the nearest rows; None before the first search, and without faiss.
    above: what stands above each row; None before the first search, and for indexes without headings.
    """

    collection: Collection
    words: Vocabulary
    extras: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    stored: Stored | None = None
    prepared: Any = None
    near: FaissRows | None = None
    above: HeadingTexts | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {
            "collection": self.collection,
            "words": self.words,
            "extras": {},
            "stored": None,
            "prepared": None,
            "near": None,
            "above": None,
        }

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """The documents in order."""
        return tuple(self.collection.documents.values())

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each document by its id."""
        return {identifier: place for place, identifier in enumerate(self.collection.documents)}

    @cached_property
    def matcher(self) -> DocumentMatcher:
        """Tells which documents meet a filter."""
        return DocumentMatcher(self.documents)

    @cached_property
    def draws(self) -> IntArray:
        """(n_rows,) draws of the rows; see `precise_rag.index.arrays.draws`."""
        sizes = np.diff(self.collection.offsets)
        places = np.arange(len(self.collection)) - np.repeat(self.collection.offsets[:-1], sizes)
        return draws(np.repeat(seeds_of(self.collection.documents), sizes), places)

    def kept(self, part: str, make: Callable[[], Columns]) -> Columns:
        """The arrays "<part>.<name>" of `extras`, by name; `make` makes them at the first call."""
        prefix = f"{part}."
        if not any(name.startswith(prefix) for name in self.extras):
            self.extras |= {prefix + name: array for name, array in make().items()}
        return {n.removeprefix(prefix): array for n, array in self.extras.items() if n.startswith(prefix)}


@dataclass(frozen=True, eq=False)
class Part:
    """A segment, and which of its documents are not deleted.

    alive: (n_documents,) whether each document is in the index; None for all.
    """

    segment: Segment
    alive: BoolArray | None = None

    def __len__(self) -> int:
        """The number of rows that are not deleted."""
        return len(self.segment.collection) - len(self.dead_rows)

    @property
    def prepared(self) -> Any:
        """The segment's arrays for searches."""
        return self.segment.prepared

    @cached_property
    def rows(self) -> BoolArray | None:
        """(n_rows,) whether each row is not deleted; None for all."""
        if self.alive is None:
            return None
        return np.repeat(self.alive, np.diff(self.segment.collection.offsets))

    @cached_property
    def dead_rows(self) -> npt.NDArray[np.int64]:
        """The deleted rows."""
        return np.zeros(0, dtype=np.int64) if self.rows is None else np.flatnonzero(~self.rows)

    def mask(self, rows: IntArray) -> BoolArray:
        """(n_rows,) which rows of the segment are among `rows`."""
        mask = np.zeros(len(self.segment.collection), dtype=np.bool_)
        mask[rows] = True
        return mask

    @property
    def documents(self) -> Sequence[Document]:
        """The documents that are not deleted, in order."""
        everything = self.segment.documents
        if self.alive is None:
            return everything
        return [
            document for document, is_alive in zip(everything, self.alive.tolist(), strict=True) if is_alive
        ]

    def get(self, identifier: str) -> Document | None:
        """Return the document with this id, unless it is not here or deleted."""
        document = self.segment.collection.documents.get(identifier)
        if document is None or self.alive is None:
            return document
        return document if self.alive[self.segment.places[identifier]] else None

    def without(self, ids: Iterable[str]) -> Part:
        """Return the part with these documents deleted; ids that are not here are skipped."""
        places = [self.segment.places[i] for i in ids if i in self.segment.collection.documents]
        if not places:
            return self
        alive = np.ones(len(self.segment.places), dtype=np.bool_) if self.alive is None else self.alive.copy()
        alive[places] = False
        return Part(self.segment, alive)

    def copied(self, documents: Iterable[Document]) -> Segment:
        """Return a segment with the rows of some documents of this part, and with their new metadata."""
        new = {document.id: document for document in documents}
        kept = np.array(
            [identifier in new for identifier in self.segment.collection.documents], dtype=np.bool_
        )
        rows = self.segment.collection.only(kept)
        described = {identifier: new[identifier] for identifier in rows.documents}
        return Segment(Collection(described, rows.offsets, rows.columns), self.segment.words)


def changed(
    parts: Sequence[Part],
    added: Segment | None,
    gone: SizedIterable[str],
    redescribed: Mapping[str, Document],
) -> tuple[Part, ...]:
    """Return the parts of an index after a change.

    added: new documents; None for none. gone: ids of documents to delete or replace.
    redescribed: documents whose text is known and whose metadata are new, by id.
    """
    copies = [
        Part(part.copied(redescribed_here))
        for part in parts
        if (redescribed_here := [document for document in redescribed.values() if part.get(document.id)])
    ]
    left = [part.without({*gone, *redescribed}) for part in parts]
    new = [] if added is None or not added.collection.documents else [Part(added)]
    return tidied([*left, *copies, *new])


def tidied(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts with small neighbours merged, and without segments that hold too much that is deleted.

    Each row is merged about once each time the index doubles.
    """
    groups = [[part] for part in parts if part.alive is None or part.alive.any()]
    sizes = [len(part) for (part,) in groups]
    place = len(groups) - 2
    while place >= 0:
        if sizes[place] < max(SMALL, FACTOR * sizes[place + 1]):
            groups[place : place + 2] = [groups[place] + groups[place + 1]]
            sizes[place : place + 2] = [sizes[place] + sizes[place + 1]]
            place = min(place, len(groups) - 2)
        else:
            place -= 1
    return tuple(group[0] if _stays(group) else Part(merged(group)) for group in groups)


def merged(parts: Sequence[Part]) -> Segment:
    """Return one segment with the documents of several parts, without deleted ones."""
    kept = [p.segment.collection if p.alive is None else p.segment.collection.only(p.alive) for p in parts]
    words, columns = joined_words([part.segment.words for part in parts], [rows.columns for rows in kept])
    renumbered = [
        Collection(rows.documents, rows.offsets, {**rows.columns, **changed})
        for rows, changed in zip(kept, columns, strict=True)
    ]
    return Segment(Collection.joined(renumbered), words)


def _stays(group: SizedIterable[Part]) -> bool:
    """Whether a group is one part that need not be written again."""
    if len(group) > 1:
        return False
    (part,) = group
    n_rows = len(part.segment.collection)
    return part.alive is None or (n_rows >= SMALL and len(part.dead_rows) <= MOST_DELETED * n_rows)
