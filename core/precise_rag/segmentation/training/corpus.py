"""Labelled documents as arrays, and batches of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from precise_rag.segmentation.training.labelled_documents import (
    UNKNOWN,
    LabelArray,
    LabelledDocument,
    is_held_out,
)
from precise_rag.sentences.sentence_tables import in_batches
from precise_rag.types import BoolArray, IntArray

PAD = 16
"""Empty places between windows in one batch: more than any convolution reaches."""
_PIECE = (3, 12)
"""Sentences of a piece in a spliced window: as in Choi's segments."""
_Window = list[tuple[int, int]]
"""Neighbouring sentences, as (start, end) pieces of the corpus: one piece, or several if spliced."""


class Batch(NamedTuple):
    """Windows of sentences in one line of `n_places` places, PAD places apart.

    sentences: (m,) rows of the corpus. places: (m,) place of each in the line. targets: (m, 2) as in
    the corpus; UNKNOWN after the last sentence of a window, because the next one is not in it.
    """

    sentences: IntArray
    places: IntArray
    targets: LabelArray
    n_places: int


@dataclass(frozen=True, slots=True, eq=False)
class TrainingCorpus:
    """The labels of d documents with n sentences together.

    starts: (d + 1,) first sentence of each document. targets: (n, 2) int8 labels of paragraph and
    section ends; UNKNOWN after the last sentence of a document. held_out: (d,) whether each document is
    held out.
    """

    starts: IntArray
    targets: LabelArray
    held_out: BoolArray

    @classmethod
    def of(cls, documents: Sequence[LabelledDocument], *, held_out: float, seed: int) -> Self:
        """Lay out the labels of `documents`, and hold out a share of them by a hash of their ids."""
        starts = np.cumsum([0, *(len(document.sentences) for document in documents)], dtype=np.int64)
        targets = np.full((int(starts[-1]), 2), UNKNOWN, dtype=np.int8)
        for start, document in zip(starts, documents, strict=False):
            gaps = slice(start, start + len(document.paragraph))
            targets[gaps, 0], targets[gaps, 1] = document.paragraph, document.section
        chosen = np.array([is_held_out(document.id, held_out, seed) for document in documents])
        return cls(starts, targets, chosen)

    def batches(
        self, size: int, window: int, rng: np.random.Generator, *, splice: float = 0.0
    ) -> Iterator[Batch]:
        """Yield all training documents once, in random order, in windows of at most `window` sentences.

        size: sentences in a batch, about. splice: share of the windows that are cut into pieces of a few
        sentences and joined at random; a paragraph and a section end where two pieces meet. As in Choi's
        artificial documents, this shows clear changes of topic.
        """
        windows = [
            edges
            for document in np.flatnonzero(~self.held_out)
            for edges in pairwise(self._edges(int(document), window, rng))
        ]
        rng.shuffle(windows)
        n_cut = round(splice * len(windows))
        lines = [[edges] for edges in windows[n_cut:]] + _spliced(windows[:n_cut], window, rng)
        rng.shuffle(lines)
        yield from self._in_lines(lines, size)

    def held_out_batches(self, size: int, window: int = 1024) -> Iterator[Batch]:
        """Yield the held-out documents once, in order."""
        windows = [
            [(first, min(first + window, int(self.starts[document + 1])))]
            for document in np.flatnonzero(self.held_out)
            for first in range(int(self.starts[document]), int(self.starts[document + 1]), window)
        ]
        yield from self._in_lines(windows, size)

    def _in_lines(self, windows: Sequence[_Window], size: int) -> Iterator[Batch]:
        groups = in_batches(windows, size, lambda pieces: sum(end - start for start, end in pieces))
        return map(self._line, groups)

    def _line(self, group: Sequence[_Window]) -> Batch:
        place = PAD
        rows, places, targets = [], [], []
        for pieces in group:
            for start, end in pieces:
                rows.append(np.arange(start, end))
                targets.append(self.targets[start:end].copy())
                targets[-1][-1] = 1
                places.append(np.arange(place, place + end - start))
                place += end - start
            targets[-1][-1] = UNKNOWN
            place += PAD
        return Batch(np.concatenate(rows), np.concatenate(places), np.concatenate(targets), place)

    def _edges(self, document: int, window: int, rng: np.random.Generator) -> list[int]:
        start, end = int(self.starts[document]), int(self.starts[document + 1])
        first = end if end - start <= window else start + int(rng.integers(1, window + 1))
        return [start, *range(first, end, window), end]


def _spliced(windows: Sequence[tuple[int, int]], window: int, rng: np.random.Generator) -> list[_Window]:
    pieces = [
        (first, last)
        for start, end in windows
        for first, last in pairwise([*range(start, end, int(rng.integers(*_PIECE))), end])
    ]
    rng.shuffle(pieces)
    joined: list[_Window] = []
    room = 0
    for piece in pieces:
        length = piece[1] - piece[0]
        if length > room:
            joined.append([])
            room = window
        joined[-1].append(piece)
        room -= length
    return joined
