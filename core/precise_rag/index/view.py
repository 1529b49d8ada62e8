"""One state of an index, and the rows that a search finds in it."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from precise_rag.facts import copied
from precise_rag.filters import Filter
from precise_rag.index.table import Part
from precise_rag.types import BoolArray, Candidate, Document, FloatArray, IntArray, ScoreScale, Span, Stretch
from precise_rag.vectors import offsets_of

_log = logging.getLogger(__name__)


class Hits(NamedTuple):
    """Rows found by a search, best first.

    rows: (k,) row numbers; see `View`.
    scores: (k,) score of each row.
    parts: (k,) scores behind `scores`, by name; they become `Candidate.scores`.
    """

    rows: IntArray
    scores: FloatArray
    parts: Mapping[str, FloatArray] = {}


class View(NamedTuple):
    """One state of an index; a search reads the same one from start to end.

    Rows are numbered through all parts, deleted ones included.

    parts: the shards with rows, and what is deleted in them.
    firsts: (n_parts + 1,) number of each part's first row, and behind the last row.
    matching: (n,) whether a search may find each row; None for all.
    """

    parts: tuple[Part, ...]
    firsts: IntArray
    matching: BoolArray | None = None

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Self:
        """Return the state of an index that has these parts."""
        with_rows = tuple(part for part in parts if len(part))
        alive = [np.ones(len(p.shard), dtype=np.bool_) if p.rows is None else p.rows for p in with_rows]
        has_deleted = any(part.rows is not None for part in with_rows)
        firsts = offsets_of([len(part.shard) for part in with_rows])
        return cls(with_rows, firsts, np.concatenate(alive) if has_deleted else None)

    @property
    def n_rows(self) -> int:
        """Number of rows, deleted ones included."""
        return int(self.firsts[-1])

    def within(self, wanted: Filter) -> Self:
        """Return a view that finds only documents that match the filter; a field that none has is logged."""
        shards = [part.shard for part in self.parts]
        warn_of_unknown_fields(wanted, lambda field: any(shard.matcher.has(field) for shard in shards))
        rows = np.concatenate([np.repeat(b.matcher.matching(wanted), np.diff(b.offsets)) for b in shards])
        return self._replace(matching=rows if self.matching is None else rows & self.matching)

    def slices(self) -> Iterator[tuple[Part, slice]]:
        """Yield each part with its rows."""
        return zip(self.parts, (slice(a, b) for a, b in pairwise(self.firsts.tolist())), strict=True)

    def split(self, rows: IntArray) -> Iterator[tuple[Part, IntArray]]:
        """Yield each part with its share of ascending `rows`, as row numbers of the part."""
        places = np.searchsorted(rows, self.firsts).tolist()
        for (part, its), (first, end) in zip(self.slices(), pairwise(places), strict=True):
            yield part, rows[first:end] - its.start

    def draws(self, rows: IntArray) -> IntArray:
        """(k,) draws of ascending rows; see `precise_rag.index.ranking.draws`."""
        return np.concatenate([part.shard.draws[own] for part, own in self.split(rows)])

    def part_of(self, row: int) -> tuple[Part, int]:
        """Return the part that a row is in, and the number of the part's first row."""
        place = int(np.searchsorted(self.firsts, row, side="right")) - 1
        return self.parts[place], int(self.firsts[place])

    def document(self, row: int) -> Document:
        """Return the document that a row is in."""
        part, first = self.part_of(row)
        return part.shard.documents[int(part.shard.owners(row - first))]

    def candidates(self, hits: Hits, score_scale: ScoreScale) -> list[Candidate]:
        """Return the rows of `hits` as candidates, in the same order; score_scale: scale of their scores."""
        named = {name: values.tolist() for name, values in hits.parts.items()}
        metadata: dict[str, Any] = {}  # copies: what a caller writes into them changes no index
        candidates = []
        for place, (row, score) in enumerate(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)):
            part, first = self.part_of(row)
            shard, own = part.shard, row - first
            document, columns = shard.documents[int(shard.owners(own))], shard.columns
            if document.id not in metadata:
                metadata[document.id] = copied(document.metadata)
            start, end = columns["spans"][own].tolist()
            passage = Span(*columns["passage_spans"][own].tolist()) if "passage_spans" in columns else None
            headings = getattr(part.prepared, "headings", None)
            candidates.append(
                Candidate(
                    doc_id=document.id,
                    start=start,
                    end=end,
                    text=document.text[start:end],
                    score=score,
                    score_scale=score_scale,
                    n_tokens=int(columns["n_tokens"][own]),
                    passage=passage,
                    scores={name: values[place] for name, values in named.items()},
                    metadata=metadata[document.id],
                    above=() if headings is None else headings.above(own),
                )
            )
        return candidates

    def stretches(self, sentences: Sequence[Candidate], reach: int, score_scale: ScoreScale) -> list[Stretch]:
        """Return the stretches of `sentences` with up to `reach` rows before and after, with score 0."""
        found = []
        for first, end in self._around(sentences, reach):
            rows = np.arange(first, end, dtype=np.int64)
            around = self.candidates(Hits(rows, np.zeros(len(rows), dtype=np.float32)), score_scale)
            text = self.document(first).text[around[0].start : around[-1].end]
            found.append(Stretch(text, tuple(around)))
        return found

    def _around(self, sentences: Sequence[Candidate], reach: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of rows around `sentences`; one that is no row is left out."""
        wanted: dict[str, set[tuple[int, int]]] = {}
        for sentence in sentences:
            wanted.setdefault(sentence.doc_id, set()).add((sentence.start, sentence.end))
        for part, rows in self.slices():
            for identifier in filter(part.get, wanted):
                place = part.shard.places[identifier]
                first, end = map(int, part.shard.offsets[place : place + 2])
                spans = part.shard.columns["spans"][first:end].tolist()
                found = [row for row, span in enumerate(spans) if tuple(span) in wanted[identifier]]
                for low, high in rows_around(found, len(spans), reach):
                    yield rows.start + first + low, rows.start + first + high


def rows_around(rows: Iterable[int], n_rows: int, reach: int) -> list[tuple[int, int]]:
    """Return the ranges of the `n_rows` rows at most `reach` from one of `rows`, joined where they meet."""
    ranges: list[tuple[int, int]] = []
    for row in sorted(rows):
        first, last = max(0, row - reach), min(n_rows, row + reach + 1)
        if ranges and first <= ranges[-1][1]:
            first, _ = ranges.pop()
        ranges.append((first, last))
    return ranges


def warn_of_unknown_fields(wanted: Filter, has: Callable[[str], bool]) -> None:
    """Log each field that a filter names and no document has. has: whether one of them has a field."""
    for field in dict.fromkeys(c.field for c in wanted.conditions() if c.operator != "$exists"):
        if not has(field):
            _log.warning(
                "the filter names %r, which no document has in its metadata, so nothing meets it", field
            )
