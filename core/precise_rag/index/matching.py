"""Which documents and rows of a collection meet a filter."""

import logging
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from precise_rag.filters import Condition, Filter, field_value
from precise_rag.types import Document

BoolArray = npt.NDArray[np.bool_]

_log = logging.getLogger(__name__)
_MOST_FILTERS = 64
"""Filters whose documents are remembered."""


def warn_of_unknown_fields(wanted: Filter, has: Callable[[str], bool]) -> None:
    """Log each field that a filter names and no document has. has: whether one of them has a field."""
    for field in dict.fromkeys(c.field for c in wanted.conditions() if c.operator != "$exists"):
        if not has(field):
            _log.warning(
                "the filter names %r, which no document has in its metadata, so nothing meets it", field
            )


class DocumentMatcher:
    """Tells which documents meet a filter. Each field is read once, and compared once per value.

    documents: the documents, in order; they must not change.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._fields: dict[str, tuple[npt.NDArray[np.int64], list[object]]] = {}
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
        holds = np.array([condition.holds(value) for value in values], dtype=np.bool_)
        return holds[numbers]

    def _values(self, field: str) -> tuple[npt.NDArray[np.int64], list[object]]:
        """The number of each document's value of a field, and the values by their numbers."""
        if field not in self._fields:
            numbers: dict[object, int] = {}
            values: list[object] = []
            column = np.empty(len(self._documents), dtype=np.int64)
            for place, document in enumerate(self._documents):
                value = field_value(document, field)
                key = (type(value), value) if isinstance(value, str | int | float | None) else place
                column[place] = number = numbers.setdefault(key, len(values))
                if number == len(values):
                    values.append(value)
            self._fields[field] = column, values
        return self._fields[field]
