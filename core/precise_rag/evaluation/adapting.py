"""Adapting a reranker to a collection, by questions whose evidence is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag._progress import progress_bar
from precise_rag.errors import InputError
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.measures.statistics import Interval, compare_paired
from precise_rag.pipeline import PreciseRAG
from precise_rag.protocols import Reranker, Source
from precise_rag.rerank import LevelledReranker, calibrated, load_reranker
from precise_rag.rerank.adapted import Adaptation, AdaptedReranker, adaptation_columns, identity
from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds
from precise_rag.types import Candidate, FloatArray, ScoreScale

FEWEST_QUESTIONS = 20
"""Questions with evidence that are needed."""
_N_FOLDS = 5
_AS_IT_IS = 3.0
"""How strongly weights are held where they are: as by so many candidates that contradict a change."""
_LEAST_GAIN = 0.02
"""Log loss of a question's candidates that is worth an adaptation."""
_BUDGET = 500
"""Tokens within which evidence is counted."""

_Columns = Mapping[str, FloatArray]


class Adapted(NamedTuple):
    """What `adapt` found.

    adaptation: what to use; None if nothing was gained, and the reranker stays as it is.
    says: what was gained, or why nothing was, in a sentence.
    loss, evidence: the gains on questions held out, with 95 % intervals. loss: how much lower the log loss
        of a question's candidates is. evidence: how much more of the evidence is in the first 500 tokens.
    before, after: the share of the evidence in the first 500 tokens.
    n_questions: how many had evidence.
    """

    adaptation: Adaptation | None
    says: str
    loss: Interval
    evidence: Interval
    before: float
    after: float
    n_questions: int


class _Asked(NamedTuple):
    """The n candidates of a question: their columns, which hold evidence, and their tokens."""

    group: str
    columns: dict[str, FloatArray]
    relevant: npt.NDArray[np.bool_]
    n_tokens: npt.NDArray[np.int64]


class _Listener:
    """A reranker that keeps the columns of what it scores: whole candidates, however long they are."""

    score_scale: ScoreScale = "probability"
    is_calibrated = True

    def __init__(self, reranker: Reranker, wanted: Sequence[str]) -> None:
        self.reranker, self.wanted, self.name = reranker, wanted, reranker.name
        self.reads_around: bool = getattr(reranker, "reads_around", False)
        self.heard: tuple[list[Candidate], dict[str, FloatArray]] = ([], {})

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        _, columns = adaptation_columns(self.reranker, query, candidates, self.wanted)
        self.heard = list(candidates), columns
        return LogisticRegression({"base": 1.0})(columns)


def adapt(
    index: Source,
    questions: Sequence[Question],
    *,
    reranker: Any = "default",
    n_candidates: int | None = None,
    show_progress: bool = False,
) -> Adapted:
    """Fit the levels of a reranker to a collection, and its order where the questions say so.

    The weights start at "as it is" and are held there; few questions change little. What is gained is told by
    questions held out in five parts, with all questions about a document in the same part. The order stays
    if another one puts less of the evidence first; if the log loss is not surely lower, nothing is adapted.

    index: what is searched.
    questions: with evidence, at least 20.
    reranker: anything `load_reranker` accepts; default: the cascade. Of one that is adapted, the reranker
        is adapted anew.
    n_candidates: as for `PreciseRAG`.
    show_progress: show a progress bar.
    Raises InputError for too few questions.
    """
    asked = [question for question in questions if question.evidence]
    if len(asked) < FEWEST_QUESTIONS:
        raise InputError(
            f"{FEWEST_QUESTIONS} questions with evidence are needed to adapt anything, got {len(asked)} "
            f"with evidence of {len(questions)}; nothing was changed"
        )
    loaded = load_reranker(reranker)
    base = loaded.reranker if isinstance(loaded, AdaptedReranker) else calibrated(loaded)
    lists = _lists(index, asked, base, n_candidates, show_progress)
    encoder = getattr(index, "encoder", None)
    forms = _forms(base)
    groups = [one.group for one in lists]
    now = _judged(lists, [{"base": 1.0}] * len(lists))
    tried = [(names, _tried(lists, names)) for names in forms]
    tried = [one for one in tried if one[1].shares.mean() >= now.shares.mean()] or tried[:1]
    names, held_out = min(tried, key=lambda one: float(one[1].losses.mean()))
    loss = compare_paired(now.losses, held_out.losses, groups=groups).difference
    evidence = compare_paired(held_out.shares, now.shares, groups=groups).difference
    before, after = float(now.shares.mean()), float(held_out.shares.mean())
    gained = loss.low > 0 and loss.mean >= _LEAST_GAIN and before <= after
    told = (
        f"log loss {now.losses.mean():.2f} before, {held_out.losses.mean():.2f} adapted "
        f"(gain {_shown(loss)}); "
        f"evidence in the first {_BUDGET} tokens {100 * before:.1f} % before, {100 * after:.1f} % adapted "
        f"(gain {_shown(evidence, 100)}); on {len(lists)} questions, each held out"
    )
    if not gained:
        return Adapted(
            None,
            f"kept as it is, nothing is surely gained: {told}",
            loss,
            evidence,
            before,
            after,
            len(lists),
        )
    what = "the order and the levels" if len(names) > 1 else "the levels"
    name, sha256 = identity(base)
    adaptation = Adaptation(
        weights=_fitted(lists, names),
        reranker=name,
        weights_sha256=sha256,
        encoder=None if encoder is None else encoder.name,
        n_questions=len(lists),
        gain={
            "loss": loss.mean,
            "loss_low": loss.low,
            "loss_high": loss.high,
            "evidence": evidence.mean,
            "evidence_low": evidence.low,
            "evidence_high": evidence.high,
        },
    )
    return Adapted(adaptation, f"adapted {what}: {told}", loss, evidence, before, after, len(lists))


def holds_evidence(candidate: Candidate, question: Question) -> bool:
    """Whether a candidate and a piece of evidence share half of the shorter of the two."""
    for doc_id, start, end in question.evidence:
        both = min(candidate.end, end) - max(candidate.start, start)
        shorter = min(candidate.end - candidate.start, end - start)
        if candidate.doc_id == doc_id and both > 0 and both >= 0.5 * shorter:
            return True
    return False


def _forms(base: Reranker) -> list[tuple[str, ...]]:
    """The columns of the regressions that are tried: of the levels alone, and of the order, too."""
    return [("base",), ("base", "search", *(["own"] if isinstance(base, LevelledReranker) else []))]


def _lists(
    index: Source, asked: Sequence[Question], base: Reranker, n_candidates: int | None, show_progress: bool
) -> list[_Asked]:
    """The candidates of each question as a pipeline over the index hands them to its reranker."""
    listener = _Listener(base, _forms(base)[-1])
    rag = PreciseRAG(index, reranker=listener, redundancy=None, n_candidates=n_candidates)
    lists = []
    for question in progress_bar(asked, shown=show_progress, desc="questions"):
        listener.heard = [], {}
        rag.retrieve(question.text)
        candidates, columns = listener.heard
        if candidates:
            relevant = np.array([holds_evidence(c, question) for c in candidates], dtype=np.bool_)
            sizes = np.array([c.n_tokens or len(c.text) // 4 for c in candidates], dtype=np.int64)
            lists.append(_Asked(question.group, columns, relevant, sizes))
    return lists


class _Judged(NamedTuple):
    """(n,) of each question: the log loss of its candidates, and the evidence in the first tokens."""

    losses: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]


def _tried(lists: Sequence[_Asked], names: Sequence[str]) -> _Judged:
    """Judge a form of regression on questions that it was not fitted to."""
    groups = sorted({one.group for one in lists})
    by_group = len(groups) >= _N_FOLDS
    order = np.random.default_rng(0).permutation(len(groups) if by_group else len(lists)).tolist()
    if by_group:
        place = {group: order[row] for row, group in enumerate(groups)}
        folds = [place[one.group] % _N_FOLDS for one in lists]
    else:
        folds = [row % _N_FOLDS for row in order]
    fits = {
        fold: _fitted([one for one, its in zip(lists, folds, strict=True) if its != fold], names)
        for fold in set(folds)
    }
    return _judged(lists, [fits[fold] for fold in folds])


def _judged(lists: Sequence[_Asked], weights: Sequence[Mapping[str, float]]) -> _Judged:
    losses, shares = np.zeros(len(lists)), np.zeros(len(lists))
    for row, (one, its) in enumerate(zip(lists, weights, strict=True)):
        probabilities = LogisticRegression(its)(one.columns)
        odds = log_odds(probabilities).astype(np.float64)
        losses[row] = np.logaddexp(0.0, np.where(one.relevant, -odds, odds)).sum()
        if one.relevant.any():
            best = np.argsort(-probabilities, kind="stable")
            sent = np.cumsum(one.n_tokens[best]) <= _BUDGET
            shares[row] = (one.relevant[best] & sent).sum() / one.relevant.sum()
    return _Judged(losses, shares)


def _fitted(lists: Sequence[_Asked], names: Sequence[str]) -> dict[str, float]:
    """The weights with the least log loss, held at "as it is": of `base` at 1, of the others at 0."""
    rows = [np.column_stack([one.columns[name] for name in names]) for one in lists]
    x = np.concatenate(rows).astype(np.float64)
    truth = np.concatenate([one.relevant for one in lists]).astype(np.float64)
    scale = np.append(np.maximum(x.std(axis=0), 1e-6), 1.0)
    x = np.column_stack([x, np.ones(len(x))]) / scale
    start = np.zeros(len(names) + 1)
    start[names.index("base")] = scale[names.index("base")]

    def loss(weights: npt.NDArray[np.float64]) -> float:
        odds = x @ weights
        held = 0.5 * _AS_IT_IS * ((weights - start) ** 2).sum()
        return float(np.logaddexp(0.0, np.where(truth > 0, -odds, odds)).sum() + held)

    weights = start.copy()
    for _ in range(100):  # Newton's method, with shorter steps where one would overshoot
        probabilities = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -30.0, 30.0)))
        slope = x.T @ (probabilities - truth) + _AS_IT_IS * (weights - start)
        curve = (x * (probabilities * (1.0 - probabilities))[:, None]).T @ x
        step = np.linalg.solve(curve + _AS_IT_IS * np.eye(len(weights)), slope)
        while np.abs(step).max() > 1e-8 and loss(weights - step) > loss(weights):
            step = step / 2
        weights -= step
        if np.abs(step).max() <= 1e-8:
            break
    return dict(zip((*names, "offset"), (weights / scale).tolist(), strict=True))


def _shown(gain: Interval, factor: float = 1.0) -> str:
    mean, low, high = (factor * value for value in gain)
    return f"{mean:+.2f}, interval {low:+.2f} to {high:+.2f}"
