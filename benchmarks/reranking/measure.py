"""How well each way of ranking orders the same candidates, and how good its probabilities are.

    python -m benchmarks.reranking.measure --data DIR [--reranker NAME…] [--vectors FILE] [--cache DIR]
    python -m benchmarks.reranking.measure --data DIR --cascade OLD NEW --against OLD [--lists LISTS]

Questions and documents that nothing was trained on: three whole sets, and the other half of four.
nDCG@10, MRR@10 and recall@10 count a question without a relevant candidate as 0, and know only the
relevant candidates among the 50. "texts" is the packaged reranker without the retrieval's
scores. ECE: expected calibration error over ten bins of equal width. ms: CPU time per question. Gains of
nDCG@10 are over the order of the search, or over --against, questions redrawn in pairs. With --lists, the
folder of `training.reranker_cascade.build`, also the lists that it keeps out of training.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.questions import UNSEEN, unseen
from benchmarks.tables import table
from precise_rag.protocols import Reranker
from precise_rag.rerank import CascadeReranker, PackagedReranker, load_reranker
from training.candidate_lists import HALVED, KINDS, CandidateList, cached_encoder, candidate_lists, read_set
from training.human_questions import SETS
from training.reranker_cascade.build import kept_lists

Ranker = Callable[[CandidateList], np.ndarray]
BY_SCORE = ("retrieval", "dense", "bm25")
"""Rankers whose scores are not probabilities; the rerankers are compared with the first by default."""

SAMPLES = {"squad": 300, "fairytaleqa": 300}
"""How many questions of the large sets are measured on."""

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
    ndcg = float((top * _DISCOUNT[: len(top)]).sum() / ideal)
    return ndcg, float(reciprocal), float(top.sum() / relevant.sum())


def calibration_error(probability: np.ndarray, truth: np.ndarray) -> float:
    """Expected calibration error: the mean of |mean probability - share relevant| over ten bins, by count."""
    bins = np.minimum((probability * 10).astype(int), 9)
    gaps = [abs(probability[bins == b].sum() - truth[bins == b].sum()) for b in np.unique(bins)]
    return float(sum(gaps) / len(truth))


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
                error, loss = calibration_error(*pair), log_loss(*pair)
            yield _row(set_name, kind, name, len(lists), found.mean(axis=0), ms, error, loss)

    def means(self, label: str, sets: Sequence[str], kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
        """A row for the mean over some sets of each ranker."""
        for kind in kinds:
            for name in self.rankers:
                by_set = self.found.get((name, kind), {})
                chosen = [by_set[s].mean(axis=0) for s in sets if s in by_set]
                if chosen:
                    yield _row(label, kind, name, "", np.mean(chosen, axis=0), "", "", "")

    def differences(self, first: str, groups: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
        """How much nDCG@10 each reranker gains over the first on groups of sets, with its interval."""
        for label, sets in groups.items():
            for name, kind in self.found:
                both = [
                    {s: v[:, 0] for s, v in self.found.get((one, kind), {}).items() if s in sets}
                    for one in (first, name)
                ]
                if name not in (*BY_SCORE, first) and all(both):
                    gain, low, high = mean_difference(*both)
                    row = {"sets": label, "kind": kind, "ranker": name}
                    yield {**row, "gain": gain, "low": low, "high": high}

    def reliability(self) -> Iterator[dict[str, Any]]:
        """Calibration error and log loss of each reranker by kind of list."""
        for (name, kind), pairs in self.probabilities.items():
            probability, truth = (np.concatenate(column) for column in zip(*pairs, strict=True))
            error, loss = calibration_error(probability, truth), log_loss(probability, truth)
            yield {"ranker": name, "kind": kind, "ECE": error, "log loss": loss}


def _row(
    set_name: str, kind: str, ranker: str, questions: Any, found: np.ndarray, ms: Any, error: Any, loss: Any
) -> dict[str, Any]:
    quality = dict(zip(("nDCG@10", "MRR@10", "recall@10"), map(float, found), strict=True))
    head = {"set": set_name, "kind": kind, "ranker": ranker, "questions": questions}
    return {**head, **quality, "ms": ms, "ECE": error, "log loss": loss}


def _held_out(options: Namespace) -> Iterator[tuple[str, str, list[CandidateList]]]:
    """Yield (set, kind, lists) of the unseen sets, and of the halves kept out of training."""
    encoder = cached_encoder(options.vectors)
    for name in (*UNSEEN, *HALVED):
        dataset = unseen(read_set(f"dev/{name}", options.data), name)
        dataset = replace(dataset.sample(SAMPLES.get(name), seed=1), name=f"held-out/{name}")
        for kind in options.kinds:
            yield name, kind, candidate_lists(dataset, kind, encoder, options.cache)


def _kept_out(options: Namespace) -> Iterator[tuple[str, str, list[CandidateList]]]:
    """Yield (set, kind, lists) of the documents kept out of training."""
    for kind in options.kinds if options.lists else ():
        for name, lists in kept_lists(options.lists, kind).items():
            yield name, kind, lists


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--vectors", help="file that keeps sentence vectors")
    parser.add_argument("--cache", type=Path, help="folder that keeps candidate lists")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--reranker", nargs="*", default=[], help="further names or paths for load_reranker")
    parser.add_argument("--cascade", nargs="*", default=[], metavar="FOLDER", help="further saved cascades")
    parser.add_argument("--against", default=BY_SCORE[0], help="ranker to compare with (%(default)s)")
    parser.add_argument("--lists", type=Path, help="folder of lists kept out of training")
    parser.add_argument("--questions", type=int, help="of each set at most")
    options = parser.parse_args()
    rankers: dict[str, Ranker] = {
        "retrieval": lambda one: np.array([c.score for c in one.candidates]),
        "dense": by_score("dense"),
        "bm25": by_score("bm25"),
        "packaged": by_reranker(load_reranker()),
        "packaged, texts": by_reranker(load_reranker(), texts_only=True),
        **{name: by_reranker(load_reranker(name)) for name in options.reranker},
        **{name: by_reranker(CascadeReranker(Path(name))) for name in options.cascade},
    }
    measured = Measured(rankers)
    rows, names = [], {}
    for set_name, kind, lists in chain(_held_out(options), _kept_out(options)):
        some = [one for one in lists[: options.questions] if one.candidates]
        rows += measured.add(set_name, kind, some)
        names[set_name] = (set_name,)
        print(set_name, kind, flush=True)
    for label, sets in (("unseen sets", UNSEEN), ("all", (*UNSEEN, *HALVED))):
        rows += measured.means(label, sets, options.kinds)
    groups: dict[str, Sequence[str]] = {"unseen": UNSEEN, "half seen": HALVED}
    if options.against != BY_SCORE[0]:
        groups |= {"kept out": [name for name in names if name in SETS], **names}
    parts = [
        "# Rerankers on the same candidates",
        table(rows, ".3f"),
        f"## nDCG@10 gained over {options.against}",
        table(list(measured.differences(options.against, groups)), ".3f"),
        "## Probabilities over all questions",
        table(list(measured.reliability()), ".3f"),
    ]
    made = record.made(__spec__.name, options, reranker=PackagedReranker().weights_sha256)
    record.save(
        "reranking" if options.against == BY_SCORE[0] else "reranking-against", made, "\n\n".join(parts)
    )


if __name__ == "__main__":
    main()
