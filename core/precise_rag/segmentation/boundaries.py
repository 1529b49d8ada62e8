"""What a boundary model reads and gives, and the choice of cuts."""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from precise_rag.protocols import Encoder
from precise_rag.structure import TextFormat
from precise_rag.structure.marks import without_marks, without_tags
from precise_rag.types import BoolArray, FloatArray, IntArray, SentenceTable


def as_heading(text: str) -> str:
    """Return a heading's words on one line, marked as in Markdown."""
    return f"# {' '.join(text.split())}"


def readable_sentences(sentences: Sequence[str], is_heading: BoolArray, text_format: TextFormat) -> list[str]:
    """Return the sentences without tags of HTML, and each heading in the one form that the models know."""
    readable = list(map(without_tags, sentences)) if text_format == "html" else list(sentences)
    for row in np.flatnonzero(is_heading).tolist():
        readable[row] = as_heading(without_marks(sentences[row]))
    return readable


class BoundaryModel(Protocol):
    """A model that gives the logits of boundaries between sentences."""

    @property
    def weights_sha256(self) -> str:
        """Checksum of the weights."""

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of the sentence vectors that the model reads; None if it reads none."""

    def predict(self, sentences: Sequence[str], table: SentenceTable | None = None) -> FloatArray:
        """Return the (n - 1, 2) logits for "a paragraph ends after sentence i" and "a section ends" there.

        table: the sentences' vectors, if they exist; otherwise the model encodes the sentences.
        """

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Return the (n,) token counts of texts, as `max_tokens` counts them by default."""


def choose_cuts(
    gains: FloatArray,
    n_tokens: IntArray,
    *,
    max_tokens: int,
    min_tokens: int,
    target_tokens: int,
    forced: BoolArray,
    short_cost: float,
) -> IntArray:
    """Return the gaps to cut, ascending: those with the largest sum of gains within the limits.

    gains: (n - 1,) value of a cut after sentence i; without limits, the positive ones are cut.
    n_tokens: (n,) tokens of each sentence.
    max_tokens: limit of each segment; only a single sentence may exceed it.
    min_tokens, short_cost: a shorter segment costs so much. max_tokens and forced cuts take precedence.
    target_tokens: a shorter segment costs up to _SHORTNESS, in proportion to what it lacks; 0: nothing.
    forced: (n - 1,) true where there must be a cut.

    Dynamic programming over segment ends with sliding maxima over their starts: time is linear in n.
    Source: SAGE, section IV-D. Differs: SAGE cuts each gap by its own score alone, which is this
    function with gains = threshold - score and no limits.
    """
    n = len(n_tokens)
    if n < 2:
        return np.zeros(0, dtype=np.int64)
    ends = [0, *np.cumsum(n_tokens).tolist()]
    worth = [0.0, *np.asarray(gains, dtype=np.float64).tolist(), 0.0]
    barriers = [False, *forced.tolist(), True]
    target = max(min_tokens, target_tokens) if target_tokens else 0
    slope = _SHORTNESS / target if target else 0.0
    full_size = max(min_tokens, target)
    best = [0.0] * (n + 1)
    value = [0.0] * (n + 1)  # of a start, apart from what its end adds, while its segment is under target
    source = [0] * (n + 1)
    full: deque[int] = deque()  # starts of segments of full_size or more, by falling `best`, then place
    near: deque[int] = deque()  # starts of segments of min_tokens or more, by falling `value`, then place
    short: deque[int] = deque()  # starts of shorter segments, likewise
    first_near = first_short = 0
    for end in range(1, n + 1):
        at = ends[end]
        _add_start(short, end - 1, value)
        while first_short < end and at - ends[first_short] >= min_tokens:
            _add_start(near, first_short, value)
            first_short += 1
        while first_near < first_short and at - ends[first_near] >= full_size:
            _add_start(full, first_near, best)
            first_near += 1
        lack = slope * (target - at)
        choices = (
            (_best_start(full, 0, at - max_tokens, ends), best, 0.0),
            (_best_start(near, first_near, at - max_tokens, ends), value, lack),
            (_best_start(short, first_short, at - max_tokens, ends), value, lack + short_cost),
        )
        scored = [(row[start] - cost, -start) for start, row, cost in choices if start >= 0]
        top, place = max(scored, default=(best[end - 1], 1 - end))
        best[end] = top + worth[end]
        value[end], source[end] = best[end] - slope * at, -place
        if barriers[end]:
            for starts in (full, near, short):
                starts.clear()
            first_near = first_short = end
    cuts = []
    place = source[n]
    while place:
        cuts.append(place - 1)
        place = source[place]
    return np.array(cuts[::-1], dtype=np.int64)


def _add_start(starts: deque[int], start: int, value: Sequence[float]) -> None:
    """Append a start to a deque by falling value; the ones that it beats can never be chosen again."""
    while starts and value[starts[-1]] < value[start]:
        starts.pop()
    starts.append(start)


def _best_start(starts: deque[int], first: int, earliest: int, ends: Sequence[int]) -> int:
    """Return the best start that is not before `first` and token `earliest`; -1 without one."""
    while starts and (starts[0] < first or ends[starts[0]] < earliest):
        starts.popleft()
    return starts[0] if starts else -1


_SHORTNESS = 8.0
"""Cost, in log-odds, of a segment that has nothing of its target; it falls linearly to 0 at the target."""
