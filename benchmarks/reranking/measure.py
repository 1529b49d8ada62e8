"""How well each way of ranking orders the same candidates, and how good its probabilities are.

    PRECISE_DATA=DIR python benchmarks/reranking/measure.py [--cross-encoder NAME] [--cache DIR]

Questions and documents that nothing was trained on: three whole sets, and the other half of four.
nDCG@10, MRR@10 and recall@10 count a question without a relevant candidate as 0, and take the
relevant ones among the 50 as all there are. "texts" is the packaged reranker without the retrieval's
scores. ECE: expected calibration error over ten bins of equal width.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from lists import UNSEEN, CandidateList, arguments, held_out, save

from precise_rag.protocols import Reranker
from precise_rag.rerank import load_reranker

Ranker = Callable[[CandidateList], np.ndarray]
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


def by_reranker(reranker: Reranker, *, texts_only: bool = False) -> Ranker:
    def rank(one: CandidateList) -> np.ndarray:
        given = one.candidates
        if texts_only:
            given = [replace(c, score=0.0, scores={}) for c in given]
        return reranker.score(one.question, given)

    return rank


def by_score(name: str) -> Ranker:
    return lambda one: np.array([c.scores.get(name, np.nan) for c in one.candidates])


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--cross-encoder", help="name or path of a sentence-transformers CrossEncoder")
    options = parser.parse_args()
    rankers: dict[str, Ranker] = {
        "retrieval": lambda one: np.array([c.score for c in one.candidates]),
        "dense": by_score("dense"),
        "bm25": by_score("bm25"),
        "packaged": by_reranker(load_reranker()),
        "packaged, texts": by_reranker(load_reranker(), texts_only=True),
    }
    if options.cross_encoder:
        rankers[options.cross_encoder] = by_reranker(load_reranker(options.cross_encoder))
    rows, all_found = [], {name: [] for name in rankers}
    curves: dict[str, tuple[list[np.ndarray], list[np.ndarray]]] = {}
    for set_name, kind, lists in held_out(options):
        lists = [one for one in lists if one.candidates]
        for name, rank in rankers.items():
            started = time.process_time()
            scores = [rank(one) for one in lists]
            ms = (time.process_time() - started) * 1e3 / len(lists)
            if any(np.isnan(s).any() for s in scores):
                continue
            found = np.mean([quality(s, one.relevant) for s, one in zip(scores, lists, strict=True)], axis=0)
            row = {"set": set_name, "kind": kind, "ranker": name, "questions": len(lists)}
            row |= dict(zip(("nDCG@10", "MRR@10", "recall@10"), map(float, found), strict=True)) | {
                "ms": ms,
                "ECE": "",
            }
            if name.startswith("packaged"):
                probability, truth = np.concatenate(scores), np.concatenate([one.relevant for one in lists])
                row["ECE"] = calibration_error(probability, truth)[0]
                kept = curves.setdefault(name, ([], []))
                kept[0].append(probability)
                kept[1].append(truth)
            rows.append(row)
            all_found[name].append((set_name, kind, found))
    for label, chosen in (("unseen sets", UNSEEN), ("all", None)):
        for kind in options.kinds:
            for name, found in all_found.items():
                mean = [f for s, k, f in found if k == kind and (chosen is None or s in chosen)]
                if mean:
                    values = dict(
                        zip(
                            ("nDCG@10", "MRR@10", "recall@10"), map(float, np.mean(mean, axis=0)), strict=True
                        )
                    )
                    rows.append(
                        {
                            "set": label,
                            "kind": kind,
                            "ranker": name,
                            "questions": "",
                            **values,
                            "ms": "",
                            "ECE": "",
                        }
                    )
    save("measure", rows)
    for name, (probabilities, truths) in curves.items():
        error, curve = calibration_error(np.concatenate(probabilities), np.concatenate(truths))
        print(f"\n{name}: ECE {error:.4f} over everything; mean probability → share relevant (candidates)")
        for probability, share, n in curve:
            print(f"  {probability:.3f} → {share:.3f} ({n})")


if __name__ == "__main__":
    main()
