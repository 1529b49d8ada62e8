"""The rows around found sentences."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from precise_rag.index.rows.snapshot import Snapshot
from precise_rag.types import Candidate


def rows_around(rows: Iterable[int], n_rows: int, reach: int) -> list[tuple[int, int]]:
    """Return the ranges of rows at most `reach` from one of `rows`, joined where they meet.

    rows: numbers below `n_rows`.
    """
    ranges: list[tuple[int, int]] = []
    for row in sorted(rows):
        first, last = max(0, row - reach), min(n_rows, row + reach + 1)
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges


def neighbour_rows(
    snapshot: Snapshot, sentences: Sequence[Candidate], reach: int
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of rows around `sentences`; see `SentenceIndex.neighbours`."""
    wanted: dict[str, list[Candidate]] = {}
    for sentence in sentences:
        wanted.setdefault(sentence.doc_id, []).append(sentence)
    for part, rows in snapshot.slices():
        collection = part.segment.collection
        for identifier in [identifier for identifier in wanted if part.get(identifier)]:
            own_sentences = wanted.pop(identifier)
            place = part.segment.places[identifier]
            first, end = map(int, collection.offsets[place : place + 2])
            spans = collection.columns["spans"][first:end]
            places = np.searchsorted(spans[:, 0], [sentence.start for sentence in own_sentences])
            own = [
                int(row)
                for row, sentence in zip(places, own_sentences, strict=True)
                if row < len(spans) and tuple(spans[row]) == (sentence.start, sentence.end)
            ]
            for low, high in rows_around(own, len(spans), reach):
                yield rows.start + first + low, rows.start + first + high
