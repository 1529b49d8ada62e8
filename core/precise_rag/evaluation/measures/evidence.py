"""Recall, precision and IoU of a question's evidence at token budgets.

Ranked text is read in order until the budget is full. For one question, E is the set of visible
characters of its evidence, and S_b the visible characters sent for a budget of b tokens:

    recall     |E ∩ S_b| / |E|
    precision  |E ∩ S_b| / |S_b|, where text that is sent twice counts twice in |S_b|
    IoU        |E ∩ S_b| / (|E| + |S_b| - |E ∩ S_b|)

`last` says what happens to the first span that does not fit: "cut" (default) sends its beginning up
to the token where the budget is full. So large and small spans are compared at equal cost. The
value "whole" stops before it. If a question has several pieces of evidence, E is their union.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.evaluation.measures.positions import Located, Positions
from precise_rag.types import IntArray

Values = npt.NDArray[np.float64]
"""A (n,) array of one measure, for example one value per question."""

BUDGETS = (200, 400, 800, 1600)
"""Default token budgets."""


class EvidenceScores(NamedTuple):
    """The evidence measures of one question: one value per budget, in the order of the budgets."""

    recall: Values
    precision: Values
    iou: Values
    tokens: IntArray


class _Reading(NamedTuple):
    """The text sent within each budget: `full` whole spans, then the next one up to `cut_end`."""

    places: IntArray
    full: IntArray
    cut_end: IntArray
    tokens: IntArray

    def sent(self, at: IntArray) -> npt.NDArray[np.bool_]:
        """Return whether the character at each position is sent, as (budgets, positions)."""
        inside = (self.places[:, :1] <= at) & (at < self.places[:, 1:])
        rank = np.vstack((inside, np.ones_like(at, dtype=np.bool_))).argmax(axis=0)
        whole = rank < self.full[:, None]
        start = self._partial_start()[:, None]
        through: npt.NDArray[np.bool_] = whole | ((start <= at) & (at < self.cut_end[:, None]))
        return through

    def characters(self) -> IntArray:
        """Return the (budgets,) counts of visible characters sent, repeated text included."""
        before = np.concatenate(([0], np.cumsum(self.places[:, 1] - self.places[:, 0])))
        return before[self.full] + self.cut_end - self._partial_start()

    def _partial_start(self) -> IntArray:
        return np.append(self.places[:, 0], 0)[self.full]


def score_evidence(
    positions: Positions,
    ranked: Sequence[Located],
    evidence: Sequence[Located],
    budgets: Sequence[float] = BUDGETS,
    *,
    last: Literal["cut", "whole"] = "cut",
) -> EvidenceScores:
    """Compute recall, precision and IoU of one question's evidence at each budget.

    positions: the collection.
    ranked: the retrieved spans, best first.
    evidence: the spans that hold the answer.
    budgets: tokens; `math.inf` reads everything.
    last: "cut" or "whole", see the module.

    Raises InputError if the evidence has no visible character.
    """
    wanted = _merge(positions.locate(evidence))
    n_wanted = int((wanted[:, 1] - wanted[:, 0]).sum())
    if n_wanted == 0:
        raise InputError("the evidence is empty or only white space; leave such questions out")
    reading = _read(positions, ranked, budgets, last)
    edges = np.unique(np.concatenate((reading.places, wanted, reading.cut_end[:, None]), axis=None))
    left = edges[:-1]
    useful = np.diff(edges) * _is_inside(left, wanted)
    hit = reading.sent(left) @ useful
    sent = reading.characters()
    return EvidenceScores(
        recall=hit / n_wanted,
        precision=hit / np.maximum(sent, 1),
        iou=hit / (n_wanted + sent - hit),
        tokens=reading.tokens,
    )


def useful_ratio(
    positions: Positions,
    ranked: Sequence[Located],
    evidence: Sequence[Located],
    sentences: Sequence[Located] | IntArray,
    budget: float = 450,
    *,
    last: Literal["cut", "whole"] = "cut",
) -> float:
    """Compute the share of sent sentences that hold evidence; 0 if no sentence is sent.

    A sentence is sent if its first visible character is.

    positions, ranked, evidence, last: as for `score_evidence`.
    sentences: the sentences of all documents; or their `positions.locate`, to locate them only once.
    budget: tokens.

    Source: ParetoRAG, appendix B (Table 2), which reads about 450 tokens.
    """
    places = sentences if isinstance(sentences, np.ndarray) else positions.locate(sentences)
    places = places[places[:, 0] < places[:, 1]]
    wanted = _merge(positions.locate(evidence))
    sent = places[_read(positions, ranked, (budget,), last).sent(places[:, 0])[0]]
    if not len(sent) or not len(wanted):
        return 0.0
    overlaps = (sent[:, :1] < wanted[:, 1]) & (wanted[:, 0] < sent[:, 1:])
    return float(overlaps.any(axis=1).mean())


def _read(
    positions: Positions, ranked: Sequence[Located], budgets: Sequence[float], last: Literal["cut", "whole"]
) -> _Reading:
    places = positions.locate(ranked)
    before = positions.tokens_before(places)
    read = np.concatenate(([0], np.cumsum(before[:, 1] - before[:, 0])))
    limits = np.minimum(np.asarray(budgets, dtype=np.float64), read[-1]).astype(np.int64)
    full = np.searchsorted(read, limits, side="right") - 1
    cut_end = np.append(places[:, 0], 0)[full]
    tokens = read[full]
    partial = (limits > tokens) & (last == "cut")
    cut_end[partial] = positions.token_starts[before[full[partial], 0] + (limits - tokens)[partial]]
    return _Reading(places, full, cut_end, np.where(partial, limits, tokens))


def _merge(places: IntArray) -> IntArray:
    """Return the union of spans as disjoint ascending spans."""
    places = places[np.argsort(places[:, 0], kind="stable")]
    reach = np.maximum.accumulate(places[:, 1]) if len(places) else places[:, 1]
    opens = np.ones(len(places), dtype=np.bool_)
    opens[1:] = places[1:, 0] > reach[:-1]
    first = np.flatnonzero(opens)
    return np.column_stack(
        (places[first, 0], np.maximum.reduceat(places[:, 1], first) if len(first) else reach)
    )


def _is_inside(at: IntArray, spans: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether each position lies in one of the disjoint ascending spans."""
    row = np.searchsorted(spans[:, 0], at, side="right") - 1
    inside: npt.NDArray[np.bool_] = (row >= 0) & (at < spans[row, 1])
    return inside
