"""The documents of an index and the arrays that describe their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.types import Document, IntArray

BoolArray = npt.NDArray[np.bool_]
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

    @classmethod
    def of(cls, documents: Iterable[Document], blocks: Iterable[Columns]) -> Collection:
        """Build the collection of some documents; blocks[i] has the rows of documents[i]."""
        blocks = list(blocks)
        by_id = {document.id: document for document in documents}
        assert len(by_id) == len(blocks)
        if not blocks:
            return cls()
        sizes = [len(block["spans"]) for block in blocks]
        columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        return cls(by_id, np.concatenate([[0], np.cumsum(sizes)]), columns)

    @classmethod
    def joined(cls, collections: Iterable[Collection]) -> Collection:
        """Return one collection with the documents of several, in order; their ids must differ."""
        given = [collection for collection in collections if collection.documents]
        if len(given) < 2:
            return given[0] if given else cls()
        sizes = np.concatenate([np.diff(collection.offsets) for collection in given])
        return cls(
            {identifier: document for c in given for identifier, document in c.documents.items()},
            np.concatenate([[0], np.cumsum(sizes)]),
            {name: np.concatenate([c.columns[name] for c in given]) for name in given[0].columns},
        )

    def only(self, kept: npt.NDArray[np.bool_]) -> Collection:
        """Return the collection with the documents for which `kept` (n_documents,) is true."""
        sizes = np.diff(self.offsets)
        rows = np.repeat(kept, sizes)
        return Collection(
            dict(compress(self.documents.items(), kept.tolist())),
            np.concatenate([[0], np.cumsum(sizes[kept])]),
            {name: column[self._mask(name, rows)] for name, column in self.columns.items()},
        )

    def _mask(self, name: str, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Mask of a column's first axis; a ragged column has several values per row."""
        stem, _, kind = name.rpartition(".")
        return np.repeat(rows, self.columns[f"{stem}.lengths"]) if kind == "values" else rows
