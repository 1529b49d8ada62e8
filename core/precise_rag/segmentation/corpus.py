"""Labelled documents laid out in arrays, and the batches a training run reads from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.segmentation.data import UNKNOWN, LabelArray, LabelledDocument, is_held_out
from precise_rag.types import FloatArray, IntArray

PAD = 16
"""Empty places between documents in one batch: more than any convolution or window reaches."""


class Batch(NamedTuple):
    """Windows of sentences in a line of `n_places`, PAD places apart.

    sentences: (m,) rows of the corpus. places: (m,) where each stands in the line.
    """

    sentences: IntArray
    places: IntArray
    n_places: int


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """n sentences of all documents in order.

    starts: (d + 1,) the first sentence of each document. targets: (n, 2) int8: paragraph, section;
    UNKNOWN after the last sentence of a document. domains, held_out: (d,).
    """

    starts: IntArray
    targets: LabelArray
    domains: tuple[str, ...]
    held_out: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, documents: Sequence[LabelledDocument], *, held_out: float, seed: int) -> Corpus:
        """The labels of `documents`, with a share of them held out by id."""
        starts = np.cumsum([0, *(len(document.sentences) for document in documents)], dtype=np.int64)
        targets = np.full((int(starts[-1]), 2), UNKNOWN, dtype=np.int8)
        for start, document in zip(starts, documents, strict=False):
            gaps = slice(start, start + len(document.paragraph))
            targets[gaps, 0], targets[gaps, 1] = document.paragraph, document.section
        domains = tuple(document.domain for document in documents)
        chosen = np.array([is_held_out(document.id, held_out, seed) for document in documents])
        return cls(starts, targets, domains, chosen)

    def batches(self, size: int, window: int, rng: np.random.Generator) -> Iterator[Batch]:
        """All training documents once in random order, cut into windows of at most `window` sentences."""
        windows = [
            edges
            for document in np.flatnonzero(~self.held_out)
            for edges in pairwise(self._edges(int(document), window, rng))
        ]
        rng.shuffle(windows)
        yield from _in_lines(windows, size)

    def held_out_batches(self, size: int, window: int = 1024) -> Iterator[Batch]:
        """The held-out documents once, in order."""
        windows = [
            (first, min(first + window, int(self.starts[document + 1])))
            for document in np.flatnonzero(self.held_out)
            for first in range(int(self.starts[document]), int(self.starts[document + 1]), window)
        ]
        yield from _in_lines(windows, size)

    def _edges(self, document: int, window: int, rng: np.random.Generator) -> list[int]:
        start, end = int(self.starts[document]), int(self.starts[document + 1])
        first = end if end - start <= window else start + int(rng.integers(1, window + 1))
        return [start, *range(first, end, window), end]


def _in_lines(windows: Sequence[tuple[int, int]], size: int) -> Iterator[Batch]:
    group: list[tuple[int, int]] = []
    for window in windows:
        group.append(window)
        if sum(end - start for start, end in group) >= size:
            yield _line(group)
            group = []
    if group:
        yield _line(group)


def _line(group: Sequence[tuple[int, int]]) -> Batch:
    place = PAD
    places = []
    for start, end in group:
        places.append(np.arange(place, place + end - start))
        place += end - start + PAD
    return Batch(np.concatenate([np.arange(*window) for window in group]), np.concatenate(places), place)


def area_under_curve(scores: FloatArray, labels: npt.NDArray[np.bool_]) -> float:
    """The probability that a positive scores above a negative, ties counted half; NaN without both."""
    n_positive = int(labels.sum())
    n_negative = len(labels) - n_positive
    if not n_positive or not n_negative:
        return float("nan")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return float(
        (ranks[inverse][labels].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)
    )
