"""The documents of an index with their rows: added, replaced and deleted without touching the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from precise_rag._processes import ProcessLock
from precise_rag.checks import items_of, shown
from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.rows.segments import Part, Segment, changed, merged
from precise_rag.index.rows.snapshot import Snapshot
from precise_rag.types import Document


class RowMaker(Protocol):
    """Makes the rows of documents, like `Scheme`, which describes the methods."""

    stop_words: frozenset[str]

    def read(
        self, documents: Sequence[Document], words: Vocabulary, show_progress: bool
    ) -> Iterator[Columns]:
        """Yield the columns of each document, in order."""
        ...

    def reads_same(self, known: Document, given: Document) -> bool:
        """Whether `read` finds the same in both documents."""
        ...

    def make_ready(self, segment: Segment) -> None:
        """Prepare a segment for searches."""
        ...


class DocumentRows:
    """Documents with their rows, in segments; see `precise_rag.index.rows.segments`.

    A change replaces `parts` in one step, so that another thread sees the state before or after it.

    maker: makes the rows.
    parts: (attribute) the segments, and what is deleted in them; default: none.
    writing: (attribute) the lock that changes hold.
    """

    def __init__(self, maker: RowMaker, parts: Iterable[Part] = ()) -> None:
        self._maker = maker
        self.parts: tuple[Part, ...] = tuple(parts)
        self.writing = ProcessLock()
        self.preparing = ProcessLock()
        self._present: tuple[tuple[Part, ...], Snapshot] | None = None

    def __getstate__(self) -> dict[str, Any]:
        with self.writing:
            return {**self.__dict__, "_present": None}

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all documents, including those without text."""
        return tuple(document.id for part in self.parts for document in part.documents)

    @property
    def empty_ids(self) -> tuple[str, ...]:
        """Ids of the documents without text."""
        return tuple(
            document.id
            for part in self.parts
            for document, size in zip(
                part.segment.documents, np.diff(part.segment.collection.offsets).tolist(), strict=True
            )
            if size == 0 and part.get(document.id)
        )

    def document(self, identifier: str) -> Document:
        """Return a document by its id. Raises InputError if there is none."""
        known = self._get(identifier)
        if known is None:
            raise InputError(f"the index has no document {shown(identifier)}")
        return known

    def add(self, documents: Iterable[Document], *, show_progress: bool = False) -> None:
        """Add or replace documents; see `DocumentIndex.add`."""
        given = unique_documents(documents)
        with self.writing:
            known = {d.id: known_one for d in given if (known_one := self._get(d.id))}
            same = {d.id for d in given if d.id in known and self._maker.reads_same(known[d.id], d)}
            redescribed = {d.id: d for d in given if d.id in same and known[d.id] != d}
            try:
                added = self._read([d for d in given if d.id not in same], show_progress)
                self.parts = changed(self.parts, added, known.keys() - same, redescribed)
            except ValueError as error:
                raise InputError(f"the documents cannot be added: {error}") from error

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents; see `DocumentIndex.delete`."""
        with self.writing:
            known = {ids} if isinstance(ids, str) else set(items_of("ids", ids, str))
            if unknown := sorted(i for i in known if self._get(i) is None):
                raise InputError(f"no document {unknown[0]!r} in the index ({len(unknown)} unknown ids)")
            self.parts = changed(self.parts, None, known, {})

    def compact(self) -> None:
        """Merge all segments into one, without deleted documents."""
        with self.writing:
            if len(self.parts) > 1 or any(part.alive is not None for part in self.parts):
                self.parts = (Part(merged(self.parts)),)

    def snapshot(self) -> Snapshot:
        """Return the present state with all segments prepared for searches."""
        with self.preparing:
            parts = self.parts
            if self._present is None or self._present[0] is not parts:
                snapshot = Snapshot.of(parts)
                for part in snapshot.parts:
                    self._maker.make_ready(part.segment)
                self._present = parts, snapshot
            return self._present[1]

    def _get(self, identifier: str) -> Document | None:
        return next((document for part in self.parts if (document := part.get(identifier)) is not None), None)

    def _read(self, documents: Sequence[Document], show_progress: bool) -> Segment:
        words = Vocabulary(self._maker.stop_words)
        rows = Collection.of(documents, list(self._maker.read(documents, words, show_progress)))
        self._check_width(rows)
        for name, column in rows.columns.items():
            if column.dtype.kind == "f" and not np.isfinite(column).all():
                raise ValueError(f"column {name!r} holds numbers that are not finite")
        return Segment(rows, words)

    def _check_width(self, added: Collection) -> None:
        """Raise ValueError unless the vectors of new rows are as long as those of the others."""
        everything = (added, *(part.segment.collection for part in self.parts))
        with_vectors = (rows.columns for rows in everything if len(rows) and "vectors" in rows.columns)
        widths = {columns["vectors"].shape[1] for columns in with_vectors}
        if len(widths) > 1:
            raise ValueError(f"vectors of {' and '.join(map(str, sorted(widths)))} numbers; use one encoder")


def unique_documents(documents: Iterable[Document]) -> list[Document]:
    """The documents as a list. Raises InputError if one is not a Document, or two have the same id."""
    given: dict[str, Document] = {}
    for document in items_of("documents", documents, Document):
        if document.id in given:
            raise InputError(f"two documents have the id {document.id!r}; give each its own id")
        given[document.id] = document
    return list(given.values())
