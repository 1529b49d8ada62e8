"""How well each way of ranking orders the same candidates, and how good its probabilities are.

    python -m benchmarks.reranking --data DIR [--reranker NAME…] [--cascade FOLDER…]

Questions and documents that nothing was trained on: three whole sets, and the other half of four.
nDCG@10, MRR@10 and recall@10 count a question without a relevant candidate as 0, and know only the
relevant candidates among the 50. ECE: expected calibration error over ten bins of equal width. ms: CPU time
per question. Gains of nDCG@10 are over the order of the search, documents redrawn in pairs.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.harness.datasets import HALVED, UNSEEN, unseen
from benchmarks.harness.statistics import compare_over_sets
from benchmarks.harness.tables import about, new_parser, save, table
from precise_rag.encoders import load_encoder
from precise_rag.protocols import Reranker
from precise_rag.rerank import CascadeReranker, load_reranker
from training.candidate_lists import KINDS, CandidateList, candidate_lists, read_set

SEARCH = "retrieval"
"""The order of the search; its scores are not probabilities."""
SAMPLES = {"squad": 300, "fairytaleqa": 300}
"""How many questions of the large sets are measured on."""

Ranker = Callable[[CandidateList], np.ndarray]
_DISCOUNT = 1.0 / np.log2(np.arange(2, 12))


class Ranked(NamedTuple):
    """What a ranker made of the lists of a set. quality: (questions, 3), see `quality`."""

    set: str
    kind: str
    ranker: str
    quality: np.ndarray
    groups: Sequence[str]
    scores: np.ndarray
    relevant: np.ndarray
    ms: float


def main() -> None:
    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("--cache", type=Path, help="folder that keeps candidate lists")
    parser.add_argument("--reranker", nargs="*", default=[], help="further names or paths for load_reranker")
    parser.add_argument("--cascade", nargs="*", default=[], metavar="FOLDER", help="further saved cascades")
    args = parser.parse_args()
    rankers: dict[str, Ranker] = {
        SEARCH: lambda one: np.array([c.score for c in one.candidates]),
        "packaged": by_reranker(load_reranker("packaged")),
        **{name: by_reranker(load_reranker(name)) for name in args.reranker},
        **{name: by_reranker(CascadeReranker(Path(name))) for name in args.cascade},
    }
    found: list[Ranked] = []
    for name, kind, lists in all_lists(args):
        some = [one for one in lists if one.candidates]
        found += [ranked(name, kind, ranker, rank, some) for ranker, rank in rankers.items()]
        print(name, kind, flush=True)
    groups = {"unseen sets": UNSEEN, "half seen": HALVED, "all": (*UNSEEN, *HALVED)}
    parts = [about(__doc__), table([_row(one) for one in found], ".3f")]
    parts += ["## nDCG@10 gained over the search", table(list(gains(found, groups)), ".3f")]
    parts += ["## Probabilities over all questions", table(list(reliability(found)), ".3f")]
    save("reranking", __spec__.name, args, "Rerankers on the same candidates", *parts)


def by_reranker(reranker: Reranker) -> Ranker:
    return lambda one: reranker.score(one.question, one.candidates)


def ranked(name: str, kind: str, ranker: str, rank: Ranker, lists: Sequence[CandidateList]) -> Ranked:
    """Rank the lists of a set."""
    started = time.process_time()
    scores = [rank(one) for one in lists]
    ms = (time.process_time() - started) * 1e3 / len(lists)
    found = np.array([quality(s, one.relevant) for s, one in zip(scores, lists, strict=True)])
    relevant = np.concatenate([one.relevant for one in lists])
    groups = [one.group for one in lists]
    return Ranked(name, kind, ranker, found, groups, np.concatenate(scores), relevant, ms)


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


def gains(found: Sequence[Ranked], groups: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Yield how much nDCG@10 each ranker has on the mean of groups of sets, and gains over the search."""
    by_name = {(one.ranker, one.kind, one.set): one for one in found}
    for label, sets in (groups | {name: (name,) for name in dict.fromkeys(one.set for one in found)}).items():
        for ranker, kind in dict.fromkeys((one.ranker, one.kind) for one in found):
            ours = [by_name[ranker, kind, name] for name in sets if (ranker, kind, name) in by_name]
            theirs = [by_name[SEARCH, kind, one.set].quality[:, 0] for one in ours]
            if ours:
                pairs = [
                    (one.quality[:, 0] - other, one.groups) for one, other in zip(ours, theirs, strict=True)
                ]
                row = {"sets": label, "kind": kind, "ranker": ranker}
                row["nDCG@10"] = float(np.mean([one.quality[:, 0].mean() for one in ours]))
                yield row | {"gain": "" if ranker == SEARCH else compare_over_sets(pairs).difference}


def reliability(found: Sequence[Ranked]) -> Iterator[dict[str, Any]]:
    """Yield the calibration error and log loss of each reranker by kind of list."""
    for ranker, kind in dict.fromkeys((one.ranker, one.kind) for one in found if one.ranker != SEARCH):
        several = [one for one in found if (one.ranker, one.kind) == (ranker, kind)]
        probability = np.concatenate([one.scores for one in several])
        truth = np.concatenate([one.relevant for one in several])
        error, loss = calibration_error(probability, truth), log_loss(probability, truth)
        yield {"ranker": ranker, "kind": kind, "ECE": error, "log loss": loss}


def _row(one: Ranked) -> dict[str, Any]:
    found = dict(zip(("nDCG@10", "MRR@10", "recall@10"), one.quality.mean(axis=0).tolist(), strict=True))
    head = {"set": one.set, "kind": one.kind, "ranker": one.ranker, "questions": len(one.quality)}
    return {**head, **found, "ms": one.ms}


def all_lists(args: Namespace) -> Iterator[tuple[str, str, list[CandidateList]]]:
    """Yield (set, kind, lists) of the unseen sets and the halves, all kept out of training."""
    encoder = load_encoder()
    for name in (*UNSEEN, *HALVED):
        dataset = unseen(read_set(f"dev/{name}", args.data), name)
        dataset = replace(dataset.sample(SAMPLES.get(name), seed=1), name=f"held-out/{name}")
        for kind in KINDS:
            yield name, kind, candidate_lists(dataset, kind, encoder, args.cache)


if __name__ == "__main__":
    main()
