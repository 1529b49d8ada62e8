"""What a boundary model gives, and the choice of cuts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray, IntArray, SentenceTable


class BoundaryLogits(NamedTuple):
    """A model's output for the n sentences of one document.

    logits: (n - 1, 2) for "a paragraph ends after sentence i" and "a section ends after sentence i".
    n_tokens: (n,) tokens of each sentence.
    """

    logits: FloatArray
    n_tokens: IntArray


class BoundaryModel(Protocol):
    """A model that gives the logits of boundaries between sentences."""

    @property
    def weights_sha256(self) -> str:
        """Checksum of the weights."""
        ...

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of the sentence vectors that the model reads; None if it reads none."""
        ...

    def predict(self, sentences: Sequence[str], table: SentenceTable | None = None) -> BoundaryLogits:
        """Return the logits of each gap and the token count of each sentence.

        table: the sentences' vectors, if they exist; otherwise the model encodes the sentences.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Return the (n,) token counts of texts by the model's tokenizer."""
        ...


def choose_cuts(
    gains: FloatArray,
    n_tokens: IntArray,
    *,
    max_tokens: int | None = None,
    min_tokens: int = 0,
    forced: npt.NDArray[np.bool_] | None = None,
) -> IntArray:
    """Return the gaps to cut, ascending: those with the largest sum of gains within the limits.

    gains: (n - 1,) value of a cut after sentence i; without limits, the positive ones are cut.
    n_tokens: (n,) tokens of each sentence.
    max_tokens: limit of each segment; only a single sentence may exceed it. Default: no limit.
    min_tokens: as few segments as possible are shorter. max_tokens and forced cuts take precedence.
    forced: (n - 1,) true where there must be a cut.

    Dynamic programming over segment ends with a sliding maximum over their starts: time is linear in n.
    Source: SAGE, section IV-D. Differs: SAGE cuts each gap by its own score alone, which is this
    function with gains = threshold - score and no limits.
    """
    n = len(n_tokens)
    if n < 2:
        return np.zeros(0, dtype=np.int64)
    ends = [0, *np.cumsum(n_tokens).tolist()]
    worth = [0.0, *np.asarray(gains, dtype=np.float64).tolist(), 0.0]
    barriers = [False, *(forced.tolist() if forced is not None else [False] * (n - 1)), True]
    limit = ends[-1] if max_tokens is None else max_tokens
    short_cost = 1.0 + sum(map(abs, worth))
    best = [0.0] * (n + 1)
    source = [0] * (n + 1)
    full: deque[int] = deque()  # starts of segments of min_tokens or more, by falling `best`, then place
    near: deque[int] = deque()  # starts of shorter segments, likewise
    short = 0  # the first start whose segment is shorter
    for end in range(1, n + 1):
        _add_start(near, end - 1, best)
        while short < end and ends[end] - ends[short] >= min_tokens:
            _add_start(full, short, best)
            short += 1
        while full and ends[end] - ends[full[0]] > limit:
            full.popleft()
        place = full[0] if full else end - 1
        top = best[place] if full else -math.inf
        while near and (near[0] < short or ends[end] - ends[near[0]] > limit):
            near.popleft()
        if near and best[near[0]] - short_cost > top:
            top, place = best[near[0]] - short_cost, near[0]
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


def _add_start(starts: deque[int], start: int, best: Sequence[float]) -> None:
    """Append a start to a deque by falling `best`; the ones that it beats can never be chosen again."""
    while starts and best[starts[-1]] < best[start]:
        starts.pop()
    starts.append(start)
