"""Adapting a reranker to a collection, by questions whose evidence is known."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.pipeline.rag import PreciseRAG
from precise_rag.protocols import Reranker, Source
from precise_rag.rerank import calibrated, load_reranker
from precise_rag.rerank.candidate_texts import score_texts
from precise_rag.rerank.features import places
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
_UNCHANGED = {"base": 1.0}

Evidence = Sequence[tuple[str, int, int]]
"""Where the answer of a question is: the id of a document, and offsets in it."""
_Values = npt.NDArray[np.float64]


class AdaptedReranker:
    """A reranker whose probabilities were fitted to questions about a collection; see `adapt`.

    Its probability of a candidate is a logistic regression over the reranker's own. Where the questions say
    that the order should be another one, the place that the search gave has a weight, too.

    reranker: the one that the weights were fitted for; of one that is not calibrated only the order counts,
        see `LevelledReranker`.
    weights: of "base", "search" and "offset"; {"base": 1.0} changes nothing. They are plain numbers, to be
        kept as JSON. Raises InputError for others.
    """

    score_scale: ScoreScale = "probability"
    is_calibrated = True

    def __init__(self, reranker: Reranker, weights: Mapping[str, float]) -> None:
        if not weights.keys() <= {"base", "search", "offset"} or not all(
            map(math.isfinite, weights.values())
        ):
            raise InputError(f"weights must be finite numbers of base, search and offset, got {weights!r}")
        self.reranker, self.weights = calibrated(reranker), dict(weights)
        self.name = self.reranker.name
        self.reads_around: bool = getattr(self.reranker, "reads_around", False)

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities, one per candidate, in their order."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        return LogisticRegression(self.weights)(self._columns(query, candidates))

    def _columns(self, query: str, candidates: Sequence[Candidate]) -> dict[str, FloatArray]:
        """What the weights weigh: log-odds of the probabilities, and minus the places in the search."""
        levels = score_texts(query, candidates, self.reranker)
        return {"base": log_odds(levels, margin=1e-4), "search": -places(candidates)}


class Adapted(NamedTuple):
    """What `adapt` found.

    reranker: what to use: an `AdaptedReranker`, or the reranker as it was if nothing is surely gained.
    says: what was gained on questions held out, in a sentence.
    """

    reranker: Reranker
    says: str


def adapt(
    index: Source,
    questions: Iterable[tuple[str, Evidence]],
    *,
    reranker: Any = "default",
    n_candidates: int | None = None,
) -> Adapted:
    """Fit the probabilities of a reranker to a collection, and its order where the questions say so.

    The weights start at "as it is" and are held there; few questions change little. What is gained is told by
    questions held out in five parts, with all questions about a document in the same part. The order stays
    if another one puts less of the evidence first; if the log loss is not surely lower, nothing changes.

    index: what is searched.
    questions: pairs of a question and its evidence; at least 20 with evidence.
    reranker: anything `load_reranker` accepts; default: the cascade. One that is adapted is adapted anew.
    n_candidates: as for `PreciseRAG`.
    Raises InputError for too few questions, and for evidence that is not in the index.
    """
    given = list(questions)
    asked = {question: evidence for question, evidence in given if evidence}
    if len(asked) < FEWEST_QUESTIONS:
        raise InputError(
            f"{FEWEST_QUESTIONS} questions with evidence are needed to adapt anything, got {len(asked)} "
            f"with evidence of {len(given)}"
        )
    find: Any = getattr(index, "document", None)
    for doc_id, start, end in chain.from_iterable(asked.values()) if find else ():
        text = find(doc_id).text
        if not 0 <= start < end <= len(text):
            raise InputError(
                f"evidence {start} to {end} is not in {doc_id!r}, which has {len(text)} characters"
            )
    loaded = load_reranker(reranker)
    base = loaded.reranker if isinstance(loaded, AdaptedReranker) else calibrated(loaded)
    lists = _lists(index, asked, base, n_candidates)
    now = _judged(lists, [_UNCHANGED] * len(lists))
    forms = [(names, _held_out(lists, names)) for names in (("base",), ("base", "search"))]
    forms = [form for form in forms if form[1].shares.mean() >= now.shares.mean()] or forms[:1]
    names, held_out = min(forms, key=lambda form: float(form[1].losses.mean()))
    before, after = float(now.shares.mean()), float(held_out.shares.mean())
    gain, least = _gain(now.losses - held_out.losses, [one.group for one in lists])
    gained = least > 0 and gain >= _LEAST_GAIN and before <= after
    what = "the order and the levels" if len(names) > 1 else "the levels"
    says = (
        f"{f'adapted {what}' if gained else 'kept as it is, nothing is surely gained'}: log loss "
        f"{now.losses.mean():.2f} before, {held_out.losses.mean():.2f} adapted (gain {gain:+.2f}, surely "
        f"{least:+.2f}); evidence in the first {_BUDGET} tokens {100 * before:.1f} % before, "
        f"{100 * after:.1f} % adapted; on {len(lists)} questions, each held out"
    )
    return Adapted(AdaptedReranker(base, _fitted(lists, names)) if gained else loaded, says)


class _Asked(NamedTuple):
    """The n candidates of a question: their columns, which hold evidence, and their tokens."""

    group: str
    columns: Mapping[str, FloatArray]
    relevant: npt.NDArray[np.bool_]
    n_tokens: npt.NDArray[np.int64]


class _Judged(NamedTuple):
    """(n,) of each question: the log loss of its candidates, and the evidence in the first tokens."""

    losses: _Values
    shares: _Values


class _Noting(AdaptedReranker):
    """A reranker that changes nothing and notes the candidates of each question, with its scores."""

    def __init__(self, reranker: Reranker) -> None:
        super().__init__(reranker, _UNCHANGED)
        self.noted: dict[str, tuple[list[Candidate], Mapping[str, FloatArray]]] = {}

    def _columns(self, query: str, candidates: Sequence[Candidate]) -> dict[str, FloatArray]:
        columns = super()._columns(query, candidates)
        self.noted[query] = list(candidates), columns
        return columns


def _lists(index: Source, asked: Mapping[str, Evidence], base: Reranker, most: int | None) -> list[_Asked]:
    """The candidates of each question as a pipeline over the index hands them to its reranker."""
    noting = _Noting(base)
    rag = PreciseRAG(index, reranker=noting, redundancy=None, n_candidates=most)
    for question in asked:
        rag.retrieve(question)
    lists = []
    for question, (candidates, columns) in noting.noted.items():
        relevant = np.array([holds_evidence(c, asked[question]) for c in candidates], dtype=np.bool_)
        sizes = np.array([c.n_tokens or len(c.text) // 4 for c in candidates], dtype=np.int64)
        lists.append(_Asked(asked[question][0][0], columns, relevant, sizes))
    return lists


def holds_evidence(candidate: Candidate, evidence: Evidence) -> bool:
    """Whether a candidate and a piece of evidence share half of the shorter of the two."""
    for doc_id, start, end in evidence:
        both = min(candidate.end, end) - max(candidate.start, start)
        shorter = min(candidate.end - candidate.start, end - start)
        if candidate.doc_id == doc_id and both > 0 and both >= 0.5 * shorter:
            return True
    return False


def _held_out(lists: Sequence[_Asked], names: Sequence[str]) -> _Judged:
    """Judge a form of regression on questions that it was not fitted to."""
    keys: list[Any] = [one.group for one in lists]
    if len(set(keys)) < _N_FOLDS:
        keys = list(range(len(lists)))
    order = np.random.default_rng(0).permutation(len(set(keys))).tolist()
    place = dict(zip(sorted(set(keys)), order, strict=True))
    folds = [place[key] % _N_FOLDS for key in keys]
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


def _gain(gains: _Values, groups: Sequence[str]) -> tuple[float, float]:
    """The mean of a gain and the lower end of its 95 % interval, with groups drawn as a whole."""
    _, rows = np.unique(groups, return_inverse=True)
    sums, sizes = np.bincount(rows, gains), np.bincount(rows)
    drawn = np.random.default_rng(0).integers(len(sums), size=(2000, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return float(gains.mean()), float(np.percentile(means, 2.5))


def _fitted(lists: Sequence[_Asked], names: Sequence[str]) -> dict[str, float]:
    """The weights with the least log loss, held at "as it is": of `base` at 1, of the others at 0."""
    rows = [np.column_stack([one.columns[name] for name in names]) for one in lists]
    x = np.concatenate(rows).astype(np.float64)
    truth = np.concatenate([one.relevant for one in lists]).astype(np.float64)
    scale = np.append(np.maximum(x.std(axis=0), 1e-6), 1.0)
    x = np.column_stack([x, np.ones(len(x))]) / scale
    start = np.zeros(len(names) + 1)
    start[0] = scale[0]

    def loss(weights: _Values) -> float:
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
