"""Fit the probabilities of the cascade to a trained cross-encoder, and save it.

    python -m training.reranker_cascade.calibrate OUT --data DIR [--network FOLDER]

OUT is the folder for the model, FOLDER that of its weights (default: the package's). The questions are those
of `training.reranker.calibrate`, whose model must be in the package. The proportions of the judgements are
given below; they were chosen on the development sets and on questions about documentation, as the sets here
say nothing about questions in another language than the texts. Level and spread are fitted, but the spread is
made smaller: on documentation, which is not among these sets, the network is less sure than it should be, and
what it finds improbable is needed more often. What a candidate gains that alone has a code of the question is
fitted to such candidates.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from precise_rag.checkpoints.saved import load_checkpoint, save_checkpoint
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.packaged import packaged_reranker
from training.reranker.calibrate import SETS, Found, collection, found_in, options_of
from training.reranker.logistic_regression import fit_logistic_regression

PROPORTIONS = {
    "blend": {"packaged": 0.7, "reads": 0.4},
    "blend_dense": {"packaged": 0.5, "reads": 0.3, "dense": 2.0},
}
"""Of the judgements, where the search's cosine is unknown, and where it is known."""

SPREAD = 0.7
"""Share of the fitted spread of the log-odds."""

Lists = list[tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]]
"""Of each question: the columns and the truth of what was read, log-odds and truth of the rest."""


def judged(cascade: CascadeReranker, several: list[Found]) -> Iterator[Any]:
    """Yield what the cascade makes of each question; see `Lists`."""
    for one in several:
        rows, columns, packaged = cascade.shortlist(one.question, one.candidates)
        rest = np.setdiff1d(np.arange(len(one.candidates)), rows)
        yield columns, one.truth[rows], packaged[rest], one.truth[rest]


def fitted(sets: Mapping[str, Lists]) -> dict[str, dict[str, float]]:
    """Return the weights of the three regressions."""
    every = [(one, 1.0 / len(lists)) for lists in sets.values() for one in lists]
    weight, truth = [w for _, w in every], [one[1] for one, _ in every]
    alone = [one[0]["alone"] > 0 for one, _ in every]
    weights = {}
    for name, shares in PROPORTIONS.items():
        odds = [{"odds": sum(share * one[0][key] for key, share in shares.items())} for one, _ in every]
        spread = SPREAD * fit_logistic_regression(odds, truth, weight)["odds"]
        weights[name] = {key: spread * share for key, share in shares.items()}
        weights[name]["offset"] = offset = offset_of([spread * one["odds"] for one in odds], truth, weight)
        gains = [
            (spread * one["odds"][has] + offset, t[has])
            for one, t, has in zip(odds, truth, alone, strict=True)
        ]
        odds_alone, truth_alone = zip(*((o, t) for o, t in gains if len(o)), strict=True)
        weights[name]["alone"] = offset_of(odds_alone, truth_alone, [1.0] * len(odds_alone))
    rest = [{"packaged": one[2]} for one, _ in every]
    weights["unread"] = fit_logistic_regression(rest, [one[3] for one, _ in every], weight)
    return weights


def offset_of(odds: list[np.ndarray], truth: list[np.ndarray], weight: list[float]) -> float:
    """Return what is added to log-odds so that as many are expected to be relevant as are; by bisection."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        gaps = (np.mean(1 / (1 + np.exp(-(o + middle))) - t) for o, t in zip(odds, truth, strict=True))
        if sum(w * gap for w, gap in zip(weight, gaps, strict=True)) < 0:
            low = middle
        else:
            high = middle
    return low


def main() -> None:
    options = options_of("training.reranker_cascade.calibrate", __doc__, "reranker-cascade")
    cascade = CascadeReranker(options.network, least=0)
    sets = {name: list(judged(cascade, list(found_in(collection(name, options.data))))) for name in SETS}
    weights = fitted(sets)
    packaged = packaged_reranker().weights_sha256
    config = {"kind": "cascade", "packaged_sha256": packaged, **weights}
    save_checkpoint(options.out, config, load_checkpoint(options.network)[1])
    print(f"{weights}; saved in {options.out}")


if __name__ == "__main__":
    main()
