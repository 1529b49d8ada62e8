"""From scores of gaps to cuts. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray, IntArray, SentenceTable


class Reading(NamedTuple):
    """What a model sees in the n sentences of one document.

    logits: (n - 1, 2), of "a paragraph ends after sentence i" and "a section does".
    n_tokens: (n,).
    """

    logits: FloatArray
    n_tokens: IntArray


class BoundaryModel(Protocol):
    """What a Segmenter needs of a model."""

    @property
    def weights_sha256(self) -> str:
        """The checksum of the weights."""
        ...

    @property
    def encoder(self) -> Encoder | None:
        """What makes the vectors that the model reads, if it reads any."""
        ...

    def read(self, sentences: Sequence[str], table: SentenceTable | None = None) -> Reading:
        """Logits for each gap and a token count for each sentence. Vectors come from the table."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """(n,) tokens by the model's own tokenizer."""
        ...


def choose_cuts(
    gains: FloatArray,
    n_tokens: IntArray,
    *,
    max_tokens: int | None = None,
    min_tokens: int = 0,
    forced: npt.NDArray[np.bool_] | None = None,
) -> IntArray:
    """The gaps to cut, ascending: those with the greatest sum of gains that obey the lengths.

    gains: (n - 1,) what a cut after sentence i is worth; without limits exactly the positive ones
    are cut. n_tokens: (n,). max_tokens: no segment is longer, if no sentence is. min_tokens: as
    few segments as possible are shorter; the limit and forced cuts come first. forced: (n - 1,)
    True where a cut must be.

    Differs from SAGE, section IV-D, which cuts each gap by its own score alone: that is this
    function with gains = threshold - score and no limits. Dynamic programming over segment ends
    with a sliding maximum over their starts, so time is linear in n.
    """
    n = len(n_tokens)
    if n < 2:
        return np.zeros(0, dtype=np.int64)
    ends = [0, *np.cumsum(n_tokens).tolist()]
    worth = [0.0, *np.asarray(gains, dtype=np.float64).tolist(), 0.0]
    barriers = [False, *(forced.tolist() if forced is not None else [False] * (n - 1)), True]
    limit = ends[-1] if max_tokens is None else max_tokens
    crumb = 1.0 + sum(map(abs, worth))
    best = [0.0] * (n + 1)
    source = [0] * (n + 1)
    full: deque[int] = deque()  # starts of segments long enough, by falling `best`, ties by place
    short = 0  # the first start whose segment is a crumb
    for end in range(1, n + 1):
        while short < end and ends[end] - ends[short] >= min_tokens:
            while full and best[full[-1]] < best[short]:
                full.pop()
            full.append(short)
            short += 1
        while full and ends[end] - ends[full[0]] > limit:
            full.popleft()
        place = full[0] if full else end - 1
        top = best[place] if full else -math.inf
        for start in range(short, end):
            if best[start] - crumb > top and ends[end] - ends[start] <= limit:
                top, place = best[start] - crumb, start
        best[end], source[end] = (best[place] if top == -math.inf else top) + worth[end], place
        if barriers[end]:
            full.clear()
            short = end
    cuts = []
    place = source[n]
    while place:
        cuts.append(place - 1)
        place = source[place]
    return np.array(cuts[::-1], dtype=np.int64)
