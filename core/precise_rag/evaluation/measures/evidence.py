"""How much of the evidence reaches the reader when ranked text is read until a budget is full.

For one question, E is the set of its evidence's visible characters and S_b what is sent for a
budget of b tokens, read in rank order:

    recall     |E ∩ S_b| / |E|
    precision  |E ∩ S_b| / |S_b|, where text sent twice counts twice in |S_b|: it was paid for twice
    IoU        |E ∩ S_b| / (|E| + |S_b| - |E ∩ S_b|)

With `last="cut"` the first unit that does not fit is cut at the token where the budget is full,
so that large and small units are compared at equal cost. With `last="whole"` reading stops before
it. Alternative evidence for one question (several annotators) is taken together.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.evaluation.measures.positions import Located, Positions
from precise_rag.types import IntArray

Values = npt.NDArray[np.float64]

BUDGETS = (200, 400, 800, 1600)
"""Tokens sent, at which quality is compared throughout."""


class EvidenceScores(NamedTuple):
    """One value per budget, in the order of the budgets."""

    recall: Values
    precision: Values
    iou: Values
    tokens: IntArray


class _Reading(NamedTuple):
    """What each budget lets through: `full` whole units, then the next one up to `cut_end`."""

    places: IntArray
    full: IntArray
    cut_end: IntArray
    tokens: IntArray

    def sent(self, positions: IntArray) -> npt.NDArray[np.bool_]:
        """(budgets, positions): whether the character at each place on the line is sent."""
        inside = (self.places[:, :1] <= positions) & (positions < self.places[:, 1:])
        rank = np.vstack((inside, np.ones_like(positions, dtype=np.bool_))).argmax(axis=0)
        whole = rank < self.full[:, None]
        start = self._partial_start()[:, None]
        through: npt.NDArray[np.bool_] = whole | ((start <= positions) & (positions < self.cut_end[:, None]))
        return through

    def characters(self) -> IntArray:
        """(budgets,) visible characters sent, repeats included."""
        before = np.concatenate(([0], np.cumsum(self.places[:, 1] - self.places[:, 0])))
        return before[self.full] + self.cut_end - self._partial_start()

    def _partial_start(self) -> IntArray:
        return np.append(self.places[:, 0], 0)[self.full]


def score_evidence(
    corpus: Positions,
    ranked: Sequence[Located],
    evidence: Sequence[Located],
    budgets: Sequence[float] = BUDGETS,
    *,
    last: Literal["cut", "whole"] = "cut",
) -> EvidenceScores:
    """Recall, precision and IoU of the evidence at each budget (`math.inf`: all that is ranked).

    Raises InputError if the evidence holds no visible character.
    """
    wanted = _merge(corpus.locate(evidence))
    n_wanted = int((wanted[:, 1] - wanted[:, 0]).sum())
    if n_wanted == 0:
        raise InputError("the question's evidence is empty; leave such questions out")
    reading = _read(corpus, ranked, budgets, last)
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
    corpus: Positions,
    ranked: Sequence[Located],
    evidence: Sequence[Located],
    sentences: Sequence[Located] | IntArray,
    budget: float = 450,
    *,
    last: Literal["cut", "whole"] = "cut",
) -> float:
    """Share of the sentences sent that hold evidence; 0 if none is sent.

    A sentence is sent when its first visible character is. `sentences` are those of all documents,
    or, to locate them once for many questions, `corpus.locate` of them.
    Source: ParetoRAG, appendix B (Table 2), which reads about 450 tokens.
    """
    places = sentences if isinstance(sentences, np.ndarray) else corpus.locate(sentences)
    places = places[places[:, 0] < places[:, 1]]
    wanted = _merge(corpus.locate(evidence))
    sent = places[_read(corpus, ranked, (budget,), last).sent(places[:, 0])[0]]
    if not len(sent) or not len(wanted):
        return 0.0
    overlaps = (sent[:, :1] < wanted[:, 1]) & (wanted[:, 0] < sent[:, 1:])
    return float(overlaps.any(axis=1).mean())


def _read(
    corpus: Positions, ranked: Sequence[Located], budgets: Sequence[float], last: Literal["cut", "whole"]
) -> _Reading:
    places = corpus.locate(ranked)
    before = corpus.tokens_before(places)
    read = np.concatenate(([0], np.cumsum(before[:, 1] - before[:, 0])))
    limits = np.minimum(np.asarray(budgets, dtype=np.float64), read[-1]).astype(np.int64)
    full = np.searchsorted(read, limits, side="right") - 1
    cut_end = np.append(places[:, 0], 0)[full]
    tokens = read[full]
    partial = (limits > tokens) & (last == "cut")
    cut_end[partial] = corpus.token_starts[before[full[partial], 0] + (limits - tokens)[partial]]
    return _Reading(places, full, cut_end, np.where(partial, limits, tokens))


def _merge(places: IntArray) -> IntArray:
    """The union of spans as disjoint ascending spans."""
    places = places[np.argsort(places[:, 0], kind="stable")]
    reach = np.maximum.accumulate(places[:, 1]) if len(places) else places[:, 1]
    opens = np.ones(len(places), dtype=np.bool_)
    opens[1:] = places[1:, 0] > reach[:-1]
    first = np.flatnonzero(opens)
    return np.column_stack(
        (places[first, 0], np.maximum.reduceat(places[:, 1], first) if len(first) else reach)
    )


def _is_inside(positions: IntArray, spans: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each position lies in one of the disjoint ascending spans."""
    row = np.searchsorted(spans[:, 0], positions, side="right") - 1
    inside: npt.NDArray[np.bool_] = (row >= 0) & (positions < spans[row, 1])
    return inside
