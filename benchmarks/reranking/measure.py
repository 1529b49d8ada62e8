"""How well each way of ranking orders the same candidates, and how good its probabilities are.

    python -m benchmarks.reranking.measure --data DIR [--reranker NAME…] [--vectors FILE] [--cache DIR]

Questions and documents that nothing was trained on: three whole sets, and the other half of four.
nDCG@10, MRR@10 and recall@10 count a question without a relevant candidate as 0, and know only the
relevant candidates among the 50. "texts" is the packaged reranker without the retrieval's
scores. ECE: expected calibration error over ten bins of equal width. ms: CPU time per question.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.questions import UNSEEN
from benchmarks.reranking.held_out import held_out, new_parser, save
from precise_rag.protocols import Reranker
from precise_rag.rerank import load_reranker
from training.candidate_lists import HALVED, CandidateList

Ranker = Callable[[CandidateList], np.ndarray]
BY_SCORE = ("retrieval", "dense", "bm25")
"""Rankers whose scores are not probabilities; the rerankers are compared with the first."""

RESAMPLES = 10_000
_DISCOUNT = 1.0 / np.log2(np.arange(2, 12))


def quality(scores: np.ndarray, relevant: np.ndarray) -> tuple[float, float, float]:
    """nDCG@10, MRR@10 and recall@10 of one list."""
    if not relevant.any():
        return 0.0, 0.0, 0.0
    top = relevant[np.argsort(-scores, kind="stable")[:10]]
    first = np.flatnonzero(top)
    ideal = _DISCOUNT[: min(10, int(relevant.sum()))].sum()
    reciprocal = 1.0 / (first[0] + 1) if len(first) else 0.0
    return (
        float((top * _DISCOUNT[: len(top)]).sum() / ideal),
        float(reciprocal),
        float(top.sum() / relevant.sum()),
    )


def calibration_error(
    probability: np.ndarray, truth: np.ndarray
) -> tuple[float, list[tuple[float, float, int]]]:
    """Expected calibration error, and (mean probability, share relevant, count) of each bin in use."""
    bins = np.minimum((probability * 10).astype(int), 9)
    curve = [
        (float(probability[bins == b].mean()), float(truth[bins == b].mean()), int((bins == b).sum()))
        for b in np.unique(bins)
    ]
    return sum(abs(p - t) * n for p, t, n in curve) / len(truth), curve


def log_loss(probability: np.ndarray, truth: np.ndarray) -> float:
    """Mean of minus the natural logarithm of the probability given to what is true."""
    right = np.where(truth, probability, 1.0 - probability)
    return float(-np.log(np.maximum(right, 1e-6)).mean())


def by_reranker(reranker: Reranker, *, texts_only: bool = False) -> Ranker:
    def rank(one: CandidateList) -> np.ndarray:
        given = one.candidates
        if texts_only:
            given = [replace(c, score=0.0, scores={}) for c in given]
        return reranker.score(one.question, given)

    return rank


def by_score(name: str) -> Ranker:
    return lambda one: np.array([c.scores.get(name, np.nan) for c in one.candidates])


def mean_difference(
    theirs: Mapping[str, np.ndarray], ours: Mapping[str, np.ndarray]
) -> tuple[float, float, float]:
    """Mean over the sets of how much better `ours` is, and its 95 % interval, questions redrawn in pairs."""
    random = np.random.default_rng(0)
    drawn = np.zeros(RESAMPLES)
    for name, values in ours.items():
        gain = values - theirs[name]
        drawn += gain[random.integers(len(gain), size=(RESAMPLES, len(gain)))].mean(axis=1) / len(ours)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(np.mean([(v - theirs[k]).mean() for k, v in ours.items()])), float(low), float(high)


class Measured:
    """Results of each ranker: quality per question by (kind, set), probabilities and truth by kind."""

    def __init__(self, rankers: Mapping[str, Ranker]) -> None:
        self.rankers = rankers
        self.found: dict[tuple[str, str], dict[str, np.ndarray]] = {}
        self.probabilities: dict[tuple[str, str], list[tuple[np.ndarray, np.ndarray]]] = {}

    def add(self, set_name: str, kind: str, lists: Sequence[CandidateList]) -> Iterator[dict[str, Any]]:
        """Measure every ranker on some lists; a row of results for each that can rank them."""
        for name, rank in self.rankers.items():
            started = time.process_time()
            scores = [rank(one) for one in lists]
            ms = (time.process_time() - started) * 1e3 / len(lists)
            if any(np.isnan(s).any() for s in scores):
                continue
            found = np.array([quality(s, one.relevant) for s, one in zip(scores, lists, strict=True)])
            self.found.setdefault((name, kind), {})[set_name] = found
            error, loss = "", ""
            if name not in BY_SCORE:
                pair = np.concatenate(scores), np.concatenate([one.relevant for one in lists])
                self.probabilities.setdefault((name, kind), []).append(pair)
                error, loss = calibration_error(*pair)[0], log_loss(*pair)
            yield _row(set_name, kind, name, len(lists), found.mean(axis=0), ms, error, loss)

    def means(self, label: str, sets: Sequence[str], kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
        """A row for the mean over some sets of each ranker."""
        for kind in kinds:
            for name in self.rankers:
                by_set = self.found.get((name, kind), {})
                chosen = [by_set[s].mean(axis=0) for s in sets if s in by_set]
                if chosen:
                    yield _row(label, kind, name, "", np.mean(chosen, axis=0), "", "", "")

    def differences(self, label: str, sets: Sequence[str], kinds: Sequence[str]) -> list[dict[str, Any]]:
        """How much nDCG@10 each reranker gains over the retrieval's order on some sets, with its interval."""
        rows = []
        for kind in kinds:
            before = {s: v[:, 0] for s, v in self.found[BY_SCORE[0], kind].items() if s in sets}
            for name in self.rankers:
                if name in BY_SCORE or (name, kind) not in self.found:
                    continue
                after = {s: v[:, 0] for s, v in self.found[name, kind].items() if s in sets}
                gain, low, high = mean_difference(before, after)
                rows.append(
                    {"sets": label, "kind": kind, "ranker": name, "gain": gain, "low": low, "high": high}
                )
        return rows

    def reliability(self) -> Iterator[dict[str, Any]]:
        """The reliability curve of each reranker by kind of list, ten bins of equal width."""
        for (name, kind), pairs in self.probabilities.items():
            probability, truth = (np.concatenate(column) for column in zip(*pairs, strict=True))
            error, curve = calibration_error(probability, truth)
            yield {
                "ranker": name,
                "kind": kind,
                "ECE": error,
                "log loss": log_loss(probability, truth),
                "curve": curve,
            }


def _row(
    set_name: str, kind: str, ranker: str, questions: Any, found: np.ndarray, ms: Any, error: Any, loss: Any
) -> dict[str, Any]:
    quality = dict(zip(("nDCG@10", "MRR@10", "recall@10"), map(float, found), strict=True))
    head = {"set": set_name, "kind": kind, "ranker": ranker, "questions": questions}
    return {**head, **quality, "ms": ms, "ECE": error, "log loss": loss}


def main() -> None:
    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("--reranker", nargs="*", default=[], help="further names or paths for load_reranker")
    parser.add_argument("--questions", type=int, help="of each set at most")
    options = parser.parse_args()
    rankers: dict[str, Ranker] = {
        "retrieval": lambda one: np.array([c.score for c in one.candidates]),
        "dense": by_score("dense"),
        "bm25": by_score("bm25"),
        "packaged": by_reranker(load_reranker()),
        "packaged, texts": by_reranker(load_reranker(), texts_only=True),
        **{name: by_reranker(load_reranker(name)) for name in options.reranker},
    }
    measured = Measured(rankers)
    rows = []
    for set_name, kind, lists in held_out(options):
        some = [one for one in lists[: options.questions] if one.candidates]
        rows += measured.add(set_name, kind, some)
        print(set_name, kind, flush=True)
    for label, sets in (("unseen sets", UNSEEN), ("all", (*UNSEEN, *HALVED))):
        rows += measured.means(label, sets, options.kinds)
    save(
        __spec__.name,
        "measure",
        "Rerankers on the same candidates",
        options,
        rows,
        differences=_differences(measured, options.kinds),
        reliability=list(measured.reliability()),
    )


def _differences(measured: Measured, kinds: Sequence[str]) -> list[dict[str, Any]]:
    rows = measured.differences("unseen", UNSEEN, kinds) + measured.differences("half seen", HALVED, kinds)
    return rows


if __name__ == "__main__":
    main()
