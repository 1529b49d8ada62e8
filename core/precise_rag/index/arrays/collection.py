"""The documents of an index and the arrays that describe their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.types import Document, IntArray

Columns = Mapping[str, npt.NDArray[Any]]
"""Arrays by name; the first axis of each is rows. A ragged column x is two arrays: "x.values", all values
one row after another, and "x.lengths", how many values each row has."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents in order, each with its block of rows. Methods return new collections.

    documents: documents by id.
    offsets: (n_documents + 1,); document i has rows offsets[i] to offsets[i + 1].
    columns: what describes the rows; "spans" (n, 2) and "n_tokens" (n,) are always there.
    """

    documents: Mapping[str, Document] = field(default_factory=dict)
    offsets: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    columns: Columns = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def owners(self, rows: IntArray) -> IntArray:
        """Position of the document that each row belongs to."""
        owners: IntArray = np.searchsorted(self.offsets, rows, side="right") - 1
        return owners

    def without(self, ids: Iterable[str]) -> Collection:
        """Return the collection without these documents. Raises InputError if one is unknown."""
        ids = set(ids)
        if unknown := sorted(ids - self.documents.keys()):
            raise InputError(f"no document {unknown[0]!r} in the index ({len(unknown)} unknown ids)")
        if not ids:
            return self
        kept = np.array([identifier not in ids for identifier in self.documents], dtype=bool)
        sizes = np.diff(self.offsets)
        rows = np.repeat(kept, sizes)
        return Collection(
            {
                identifier: self.documents[identifier]
                for identifier in self.documents
                if identifier not in ids
            },
            np.concatenate([[0], np.cumsum(sizes[kept])]),
            {name: column[self._mask(name, rows)] for name, column in self.columns.items()},
        )

    def only(self, kept: npt.NDArray[np.bool_]) -> Collection:
        """Return the collection with the documents for which `kept` (n_documents,) is true."""
        return self.without([i for i, stays in zip(self.documents, kept.tolist(), strict=True) if not stays])

    def extended(self, documents: Iterable[Document], blocks: Iterable[Columns]) -> Collection:
        """Return the collection with new documents at its end; blocks[i] has the rows of documents[i]."""
        blocks = list(blocks)
        added = {document.id: document for document in documents}
        assert len(added) == len(blocks)
        assert not added.keys() & self.documents.keys()
        if not blocks:
            return self
        parts = [self.columns, *blocks] if self.columns else blocks
        sizes = [len(block["spans"]) for block in blocks]
        return Collection(
            {**self.documents, **added},
            np.concatenate([self.offsets, self.offsets[-1] + np.cumsum(sizes)]),
            {name: np.concatenate([part[name] for part in parts]) for name in blocks[0]},
        )

    def described(self, documents: Iterable[Document]) -> Collection:
        """Return the collection with these documents' metadata; their texts must be unchanged."""
        changed = {document.id: document for document in documents}
        documents_ = {**self.documents, **changed} if changed else self.documents
        return Collection(documents_, self.offsets, self.columns)

    def _mask(self, name: str, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Mask of a column's first axis; a ragged column has several values per row."""
        stem, _, kind = name.rpartition(".")
        return np.repeat(rows, self.columns[f"{stem}.lengths"]) if kind == "values" else rows
