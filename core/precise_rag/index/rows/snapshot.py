"""One state of an index, and the rows that a search finds in it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from precise_rag.filters import Filter
from precise_rag.index.arrays.collection import BoolArray
from precise_rag.index.rows.matching import matching_documents
from precise_rag.index.rows.segments import Part, Segment
from precise_rag.types import Candidate, Document, FloatArray, IntArray, ScoreScale, Span, Stretch

_MOST_NARROWED = 16
"""Filters whose own states are kept."""


class Hits(NamedTuple):
    """Rows found by a search, best first.

    rows: (k,) row numbers; see `Snapshot`.
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

    Rows are numbered through all parts, deleted ones included.

    parts: the segments with rows, and what is deleted in them.
    firsts: (n_parts + 1,) number of each part's first row, and behind the last row.
    narrowed: the states of `holding_only` for the latest filters.
    matching: (n,) whether a search may find each row; None for all.
    """

    parts: tuple[Part, ...]
    firsts: IntArray
    narrowed: dict[Filter, "Snapshot"]
    matching: BoolArray | None = None

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Self:
        """Return the state of an index that has these parts."""
        with_rows = tuple(part for part in parts if len(part))
        sizes = [len(part.segment.collection) for part in with_rows]
        matching = None
        if any(part.rows is not None for part in with_rows):
            matching = np.concatenate(
                [_alive(part, size) for part, size in zip(with_rows, sizes, strict=True)]
            )
        return cls(with_rows, np.cumsum([0, *sizes]), {}, matching)

    @property
    def n_rows(self) -> int:
        """Number of rows, deleted ones included."""
        return int(self.firsts[-1])

    @property
    def matches_nothing(self) -> bool:
        """Whether a search can find no row."""
        return not self.n_rows or (self.matching is not None and not self.matching.any())

    def within(self, wanted: Filter) -> Self:
        """Return a snapshot that finds only documents that match the filter."""
        met = zip(self._meeting(wanted), self.parts, strict=True)
        matching = [np.repeat(documents, np.diff(part.segment.collection.offsets)) for documents, part in met]
        rows = np.concatenate(matching)
        return self._replace(matching=rows if self.matching is None else rows & self.matching)

    def holding_only(self, wanted: Filter, prepare: Callable[[Segment], Any]) -> "Snapshot":
        """Return the state of an index that holds only the documents that meet a filter.

        prepare: computes `prepared` of a segment with rows.
        """
        if wanted not in self.narrowed:
            segments = []
            for meets, part in zip(self._meeting(wanted), self.parts, strict=True):
                kept = meets if part.alive is None else meets & part.alive
                segment = Segment(part.segment.collection.only(kept), part.segment.words)
                if len(segment.collection):
                    segment.prepared = prepare(segment)
                    segments.append(segment)
            if len(self.narrowed) >= _MOST_NARROWED:
                self.narrowed.pop(next(iter(self.narrowed)))
            self.narrowed[wanted] = Snapshot.of(map(Part, segments))
        return self.narrowed[wanted]

    def slices(self) -> Iterator[tuple[Part, slice]]:
        """Yield each part with its rows."""
        return zip(self.parts, (slice(a, b) for a, b in pairwise(self.firsts.tolist())), strict=True)

    def split(self, rows: IntArray) -> Iterator[tuple[Part, IntArray]]:
        """Yield each part with its share of ascending `rows`, as row numbers of the part."""
        places = np.searchsorted(rows, self.firsts).tolist()
        for (first, end), part, offset in zip(
            pairwise(places), self.parts, self.firsts.tolist(), strict=False
        ):
            yield part, rows[first:end] - offset

    def draws(self, rows: IntArray) -> IntArray:
        """(k,) draws of ascending rows; see `precise_rag.index.arrays.draws`."""
        return np.concatenate([part.segment.draws[own] for part, own in self.split(rows)])

    def part_of(self, row: int) -> tuple[Part, int]:
        """Return the part that a row is in, and the number of the part's first row."""
        place = int(np.searchsorted(self.firsts, row, side="right")) - 1
        return self.parts[place], int(self.firsts[place])

    def document(self, row: int) -> Document:
        """Return the document that a row is in."""
        part, offset = self.part_of(row)
        owner = np.searchsorted(part.segment.collection.offsets, row - offset, side="right") - 1
        return part.segment.documents[int(owner)]

    def candidates(self, hits: Hits, score_scale: ScoreScale) -> list[Candidate]:
        """Return the rows of `hits` as candidates, in the same order; score_scale: scale of their scores."""
        candidates: list[Any] = [None] * len(hits.rows)
        scores = hits.scores.tolist()
        named = {name: values.tolist() for name, values in hits.parts.items()}
        of_part = np.searchsorted(self.firsts, hits.rows, side="right") - 1
        for number in np.unique(of_part).tolist():
            places = np.flatnonzero(of_part == number)
            segment, own = self.parts[number].segment, hits.rows[places] - self.firsts[number]
            columns = segment.collection.columns
            passages = columns.get("passage_spans")
            for place, row, owner, (start, end), n_tokens, passage in zip(
                places.tolist(),
                own.tolist(),
                segment.collection.owners(own).tolist(),
                columns["spans"][own].tolist(),
                columns["n_tokens"][own].tolist(),
                [None] * len(own) if passages is None else passages[own].tolist(),
                strict=True,
            ):
                document = segment.documents[owner]
                candidates[place] = Candidate(
                    doc_id=document.id,
                    start=start,
                    end=end,
                    text=document.text[start:end],
                    score=scores[place],
                    score_scale=score_scale,
                    n_tokens=n_tokens,
                    passage=None if passage is None else Span(*passage),
                    scores={name: values[place] for name, values in named.items()},
                    metadata=document.metadata,
                    above=() if segment.above is None else segment.above.titles(row),
                )
        return candidates

    def stretch(self, first: int, end: int, score_scale: ScoreScale) -> Stretch:
        """Return the rows `first` to `end` of one document as sentences with score 0."""
        rows = np.arange(first, end, dtype=np.int64)
        sentences = self.candidates(Hits(rows, np.zeros(len(rows), dtype=np.float32)), score_scale)
        text = self.document(first).text
        return Stretch(text[sentences[0].start : sentences[-1].end], tuple(sentences))

    def _meeting(self, wanted: Filter) -> list[BoolArray]:
        return matching_documents([part.segment.matcher for part in self.parts], wanted)


def _alive(part: Part, n_rows: int) -> BoolArray:
    return np.ones(n_rows, dtype=np.bool_) if part.rows is None else part.rows
