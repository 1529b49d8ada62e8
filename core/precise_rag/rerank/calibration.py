"""Rerankers that change the scale of another one: to our probabilities, or to log-odds over chance."""

import logging
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from precise_rag.checks import check_number
from precise_rag.errors import InputError
from precise_rag.protocols import Reranker
from precise_rag.rerank.candidate_texts import score_texts
from precise_rag.rerank.cascade import cascade_reranker
from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds, matched
from precise_rag.sentences.trimming import has_words, without_markup
from precise_rag.types import Candidate, FloatArray, ScoreScale, finite_score
from precise_rag.vectors import probabilities

_log = logging.getLogger(__name__)
_FURTHEST = 0.5
"""Log-odds that a candidate may lose against those of `levels`, where both rerankers have the same weight."""


class LevelledReranker:
    """A reranker with the order of another one and the probabilities of a calibrated one.

    Scores of rerankers mean different things: logits, probabilities for another kind of text, numbers
    without a scale. So only their order is used. The candidate that `order` puts first gets the largest of
    the probabilities that `levels` gives to the same list, the second gets the second largest, and so on.
    Then both rerankers count: the log-odds of that probability and of the one that `levels` gives to the
    candidate itself are averaged. What both find is more probable than what one of them finds. What
    `levels` finds stays near its probability, wherever `order` puts it. The best is at least as probable as
    the best of `levels`, which says whether there is an answer at all. Any strictly increasing change of the
    scores of `order` leaves the result as it is.

    order: any reranker. Equal scores are ordered as `levels` orders them. A candidate whose score is not a
        finite number keeps the probability that `levels` gives to it; the first time, a warning says so.
    levels: a calibrated reranker; default: that of `load_reranker("default")`.
        `load_reranker("packaged")` is faster and knows less.
    share: weight of `order` in the average, in [0, 1]; default 0.5. With 1 its order is kept as it is, and
        with less nothing falls further below the log-odds of `levels` than 0.5 × share / (1 - share).
    """

    score_scale: ScoreScale = "probability"
    is_calibrated = True

    def __init__(self, order: Reranker, levels: Reranker | None = None, *, share: float = 0.5) -> None:
        check_number("share", share, least=0, most=1)
        self.order = order
        self.levels = cascade_reranker() if levels is None else levels
        self._regression = LogisticRegression({"order": share, "levels": 1.0 - share})
        self._furthest = _FURTHEST * share / (1.0 - share) if share < 1 else math.inf
        self.name = order.name
        self._has_warned = False

    @property
    def reads_around(self) -> bool:
        """Whether `levels` reads the text around candidates; see `with_text_around`."""
        return getattr(self.levels, "reads_around", False)

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities, one per candidate, in their order.

        Raises InputError if `order` does not return one score per candidate, or no finite number.
        """
        return self.judge(query, candidates)[1]

    def judge(
        self, query: str, candidates: Sequence[Candidate]
    ) -> tuple[npt.NDArray[np.float64], FloatArray]:
        """Return the (n,) scores of `order`, NaN where one is no finite number, and the (n,) probabilities.

        Raises InputError as `score` does.
        """
        own = usable_scores(self.order, query, candidates)
        n_missing = int(np.isnan(own).sum())
        if n_missing and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "reranker %r gave no usable score for %d of %d candidates, which keep those of %r. "
                "This is said once; each trace tells which",
                self.name,
                n_missing,
                len(own),
                self.levels.name,
            )
        levels = score_texts(query, candidates, self.levels)
        pair = {"order": log_odds(matched(own, levels)), "levels": log_odds(levels)}
        least = probabilities(pair["levels"] - self._furthest).astype(np.float32)
        joint = np.maximum(self._regression(pair), least)
        if len(levels) and joint.max() < levels.max():  # then the best of both is as probable
            shift = float(log_odds(levels.max()) - log_odds(joint.max()))
            joint = probabilities(log_odds(joint) + shift).astype(np.float32)
        return own, joint


class LogitReranker:
    """A reranker that gives the log-odds of another one's probabilities, over those of chance.

    SAGE compares logits of its reranker with their predecessors (Figs. 8 and 9). They are positive for what
    has to do with the question, and a ratio of negative ones says nothing. Calibrated log-odds are negative
    for nearly all; over chance, 0 is a candidate as probable as any of the n if one of them is relevant.

    reranker: a reranker whose scores are probabilities.
    """

    score_scale: ScoreScale = "logit"

    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker
        self.name = reranker.name

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) logits, one per candidate, in their order."""
        chance = -math.log(max(len(candidates) - 1, 1))
        return log_odds(score_texts(query, candidates, self.reranker)) - np.float32(chance)


def calibrated(reranker: Reranker) -> Reranker:
    """Return a reranker whose scores are calibrated probabilities.

    It is the given one if that says so by `is_calibrated = True`, as ours do. Otherwise it is a
    `LevelledReranker` over it.
    """
    return reranker if getattr(reranker, "is_calibrated", False) else LevelledReranker(reranker)


def usable_scores(reranker: Reranker, query: str, candidates: Sequence[Candidate]) -> npt.NDArray[np.float64]:
    """Return the (n,) scores of candidates, NaN where the reranker gives no finite number or no word is.

    Raises InputError as `score_texts`, and if no score is a finite number.
    """
    given = score_texts(query, candidates, reranker)
    scores = np.array([np.nan if (s := finite_score(one)) is None else s for one in given], dtype=np.float64)
    is_filled = np.array(
        [has_words(without_markup(candidate.text)) for candidate in candidates], dtype=np.bool_
    )
    if len(scores) and np.isnan(scores).all():
        raise InputError(
            f"reranker {reranker.name!r} must return numbers, got {type(given[0]).__name__} "
            f"{given[0]!s:.50} as the first of {len(scores)} scores, none of them finite"
        )
    return np.where(is_filled | ~is_filled.any(), scores, np.nan)
