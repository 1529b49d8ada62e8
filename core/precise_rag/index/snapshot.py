"""One state of an index, and the rows that a search finds in it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from precise_rag.filters import Filter
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.matching import BoolArray, DocumentMatcher
from precise_rag.types import Candidate, Document, FloatArray, IntArray, ScoreScale, Span, Stretch

_MOST_NARROWED = 16
"""Filters whose own states are kept."""


class Hits(NamedTuple):
    """Rows found by a search, best first.

    rows: (k,) row numbers of the collection.
    scores: (k,) score of each row.
    parts: (k,) scores behind `scores`, by name; they become `Candidate.scores`.
    """

    rows: IntArray
    scores: FloatArray
    parts: Mapping[str, FloatArray] = {}

    @classmethod
    def of(cls, rows: IntArray, scores: FloatArray, parts: Mapping[str, FloatArray]) -> Self:
        """Take `rows` from scores of all rows; rows with score -inf are left out."""
        rows = rows[np.isfinite(scores[rows])]
        return cls(rows, scores[rows], {name: values[rows] for name, values in parts.items()})

    def within(self, matching: BoolArray | None) -> Self:
        """Return the hits whose rows match, in the same order; matching: (n,) of all rows, None for all."""
        if matching is None or matching[self.rows].all():
            return self
        kept = matching[self.rows]
        parts = {name: values[kept] for name, values in self.parts.items()}
        return type(self)(self.rows[kept], self.scores[kept], parts)


class Snapshot(NamedTuple):
    """One state of an index; a search reads the same one from start to end.

    collection: documents and rows.
    documents: the documents in order.
    prepared: what the subclass computed from the collection.
    matcher: tells which documents meet a filter.
    narrowed: the states of `holding_only` for the latest filters.
    matching: (n,) whether a search may find each row; None for all.
    """

    collection: Collection
    documents: tuple[Document, ...]
    prepared: Any
    matcher: DocumentMatcher
    narrowed: dict[Filter, "Snapshot"]
    matching: BoolArray | None = None

    @property
    def matches_nothing(self) -> bool:
        """Whether a search can find no row."""
        return not len(self.collection) or (self.matching is not None and not self.matching.any())

    def within(self, wanted: Filter) -> Self:
        """Return the state for a search that keeps to a filter."""
        found = self.matcher.matching(wanted)
        return self._replace(matching=np.repeat(found, np.diff(self.collection.offsets)))

    def holding_only(self, wanted: Filter, prepare: Callable[[Collection], Any]) -> "Snapshot":
        """Return the state of an index that holds only the documents that meet a filter.

        prepare: computes `prepared` of a collection with rows.
        """
        if wanted not in self.narrowed:
            collection = self.collection.only(self.matcher.matching(wanted))
            documents = tuple(collection.documents.values())
            prepared = prepare(collection) if len(collection) else None
            if len(self.narrowed) >= _MOST_NARROWED:
                self.narrowed.pop(next(iter(self.narrowed)))
            self.narrowed[wanted] = Snapshot(collection, documents, prepared, self.matcher, {})
        return self.narrowed[wanted]

    def candidates(self, hits: Hits, score_scale: ScoreScale) -> list[Candidate]:
        """Return the rows of `hits` as candidates, in the same order; score_scale: scale of their scores."""
        columns = self.collection.columns
        spans, n_tokens, passages = columns["spans"], columns["n_tokens"], columns.get("passage_spans")
        candidates = []
        for place, (row, owner) in enumerate(zip(hits.rows, self.collection.owners(hits.rows), strict=True)):
            document = self.documents[owner]
            start, end = map(int, spans[row])
            candidates.append(
                Candidate(
                    doc_id=document.id,
                    start=start,
                    end=end,
                    text=document.text[start:end],
                    score=float(hits.scores[place]),
                    score_scale=score_scale,
                    n_tokens=int(n_tokens[row]),
                    passage=None if passages is None else Span(*map(int, passages[row])),
                    scores={name: float(values[place]) for name, values in hits.parts.items()},
                    metadata=document.metadata,
                )
            )
        return candidates

    def stretch(self, first: int, end: int, score_scale: ScoreScale) -> Stretch:
        """Return the rows `first` to `end` of one document as sentences with score 0."""
        rows = np.arange(first, end, dtype=np.int64)
        sentences = self.candidates(Hits(rows, np.zeros(len(rows), dtype=np.float32)), score_scale)
        text = self.collection.documents[sentences[0].doc_id].text
        return Stretch(text[sentences[0].start : sentences[-1].end], tuple(sentences))
