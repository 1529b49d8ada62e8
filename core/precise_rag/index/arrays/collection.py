"""The documents of an index and the arrays that describe their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.forms import Form, ascends, ensure, least_of
from precise_rag.types import Document, IntArray

BoolArray = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[Any]]
"""Arrays by name; the first axis of each is rows. A ragged column x is two arrays: "x.values", all values
one row after another, and "x.lengths", how many values each row has."""

ROW_FORMS = {"spans": Form("i", 2), "n_tokens": Form("i", 1)}
"""The columns that rows of every kind have."""


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

    def check(self) -> None:
        """Raise ValueError if offsets, columns and documents do not belong together."""
        offsets = self.offsets
        ensure(offsets.dtype.kind == "i" and offsets.ndim == 1, "offsets are not whole numbers")
        ensure(len(offsets) == len(self.documents) + 1, "offsets and documents differ in number")
        ensure(offsets[0] == 0 and ascends(offsets), "offsets do not ascend from 0")
        for name, column in self.columns.items():
            n_values = self._n_values(name)
            ensure(
                column.ndim >= 1 and len(column) == n_values,
                f"column {name!r} has {len(column)} rows, not {n_values}",
            )
        if len(self):
            ensure(self.columns.keys() >= ROW_FORMS.keys(), "columns spans and n_tokens are missing")
            for name, form in ROW_FORMS.items():
                form.check(name, self.columns[name])
            ensure(least_of(self.columns["n_tokens"]) >= 0, "column 'n_tokens' has negative numbers")
            self.check_spans("spans")

    def check_spans(self, name: str) -> None:
        """Raise ValueError if a column is not (n, 2) spans within the texts of the rows' documents."""
        spans = self.columns[name]
        ensure(spans.shape[1] == 2, f"column {name!r} does not hold pairs")
        ensure(least_of(spans) >= 0, f"column {name!r} has negative numbers")
        lengths = np.array([len(document.text) for document in self.documents.values()])
        limits = np.repeat(lengths, np.diff(self.offsets))
        ensure((spans.max(axis=1) <= limits).all(), f"column {name!r} leaves the text")

    def _n_values(self, name: str) -> int:
        """The number of values that a column must have; of a ragged one, the sum of its lengths."""
        stem, _, part = name.rpartition(".")
        if part != "values":
            return len(self)
        ensure(f"{stem}.lengths" in self.columns, f"column {name!r} has no lengths")
        lengths = self.columns[f"{stem}.lengths"]
        ensure(lengths.dtype.kind in "iu" and least_of(lengths) >= 0, f"{stem}.lengths has negative numbers")
        return int(lengths.sum(dtype=np.int64))

    def _mask(self, name: str, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Mask of a column's first axis; a ragged column has several values per row."""
        stem, _, kind = name.rpartition(".")
        return np.repeat(rows, self.columns[f"{stem}.lengths"]) if kind == "values" else rows
