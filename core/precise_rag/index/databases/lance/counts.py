"""How many rows have each word, written in the same commit as the rows that it counts.

An entry is a row of the table without a document: what one change added to the counts. The counts of a state
are the sum of the entries that are in it, so that no crash and no other writer can part them.

    add, replace    the new rows and their entry are one commit
    delete          an entry and another one that takes it back are one commit; the next one deletes the
                    rows and the second entry
    sum up          as delete; the rows are the entries that are summed up

See docs/design.md.
"""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag._extras import require
from precise_rag.index.arrays.draws import LOTTERY
from precise_rag.index.databases.checked import DamagedRowError, whole_numbers
from precise_rag.index.databases.engine import StoredDocument
from precise_rag.index.databases.lance.filters import listed
from precise_rag.index.databases.lance.rows import NONE, numbers_of, plain, select
from precise_rag.types import IntArray

SENTENCES, WITHOUT_TEXT = 0, -1
"""Counted as if they were words: the rows of sentences, and those of documents without text."""
_ENTRIES = f"lottery = {LOTTERY}"
"""The condition that entries meet, and no rows of documents."""


class WordCounts(NamedTuple):
    """terms: (k,) numbers of words, ascending. totals: (k,) in how many rows each is, or how many more."""

    terms: npt.NDArray[np.int32]
    totals: npt.NDArray[np.int32]

    def of(self, wanted: IntArray) -> IntArray:
        """(n,) the totals of some words; 0 for those that are not counted."""
        if not len(self.terms):
            return np.zeros(len(wanted), dtype=np.int64)
        places = np.minimum(np.searchsorted(self.terms, wanted), len(self.terms) - 1)
        return np.where(self.terms[places] == wanted, self.totals[places], 0).astype(np.int64)

    def taken_back(self) -> "WordCounts":
        """The counts that undo these."""
        return WordCounts(self.terms, -self.totals)


def change(added: IntArray, removed: IntArray) -> WordCounts:
    """The change that rows make to the counts; added, removed: the numbers of their words, as they come."""
    terms = np.concatenate([added, removed])
    return _summed(terms, np.repeat([1, -1], [len(added), len(removed)]))


def summed(counts: Sequence[WordCounts]) -> WordCounts:
    """The sum of several counts."""
    return _summed(
        np.concatenate([NONE, *(its.terms for its in counts)]),
        np.concatenate([NONE, *(its.totals for its in counts)]),
    )


def numbers_in(documents: Iterable[StoredDocument]) -> IntArray:
    """What the rows of documents add to the counts."""
    numbers = [NONE]
    for document in documents:
        numbers += [s.words for s in document.sentences]
        n_sentences = len(document.sentences)
        numbers.append(np.full(n_sentences or 1, SENTENCES if n_sentences else WITHOUT_TEXT))
    return np.concatenate(numbers)


def numbers_at(table: Any) -> IntArray:
    """What rows with the columns "place" and "words" have added to the counts."""
    places = whole_numbers("place", table["place"].to_pylist(), -1)
    return np.concatenate([np.where(places < 0, WITHOUT_TEXT, SENTENCES), numbers_of(table["words"])])


def entries(schema: Any, *changes: WordCounts) -> Any:
    """Entries as a table of rows. schema: that of the rows."""
    arrow = require("pyarrow", extra="lancedb")
    schema = plain(schema)
    columns = {field.name: arrow.nulls(len(changes), field.type) for field in schema}
    columns["id"] = arrow.array([f"counts {uuid.uuid4().hex}" for _ in changes], arrow.string())
    width = schema.field("vector").type.list_size
    nothing = arrow.array(np.zeros(len(changes) * width, dtype=np.float32))
    columns["vector"] = arrow.FixedSizeListArray.from_arrays(nothing, width)
    columns["scoring"] = arrow.array([b""] * len(changes), arrow.binary())
    columns["lottery"] = arrow.array([LOTTERY] * len(changes), arrow.int32())
    columns["counts"] = arrow.array(
        [np.stack(each).astype("<i4").tobytes() for each in changes], arrow.binary()
    )
    return arrow.table(columns, schema=schema)


class EntryReader:
    """Reads the entries of a state; those that were read before are kept."""

    def __init__(self) -> None:
        self._known: dict[str, WordCounts] = {}

    def read(self, rows: Any) -> dict[str, WordCounts]:
        """The entries of a state of the table, by their ids."""
        ids = select(rows, _ENTRIES, ["id"])["id"].to_pylist()
        known = self._known
        if unread := [identifier for identifier in ids if identifier not in known]:
            table = select(rows, f"{_ENTRIES} AND id IN {listed(unread)}", ["id", "counts"])
            counts = map(_read, table["counts"].to_pylist())
            known = known | dict(zip(table["id"].to_pylist(), counts, strict=True))
        self._known = {identifier: known[identifier] for identifier in ids}
        return self._known


def _read(value: Any) -> WordCounts:
    numbers = np.frombuffer(value or b"", dtype="<i4") if len(value or b"") % 8 == 0 else None
    if value is None or numbers is None:
        raise DamagedRowError("counts", "holds an entry that is no pair of lists")
    terms, totals = numbers.reshape(2, -1)
    if len(terms) and not (np.diff(terms.astype(np.int64)) > 0).all():
        raise DamagedRowError("counts", "holds words that do not ascend")
    return WordCounts(terms, totals)


def _summed(terms: IntArray, signs: IntArray) -> WordCounts:
    distinct, places = np.unique(terms, return_inverse=True)
    totals = np.bincount(places, signs, minlength=len(distinct)).astype(np.int32)
    present = totals != 0
    return WordCounts(distinct[present].astype(np.int32), totals[present])
