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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from precise_rag.checkpoints import load_checkpoint, save_checkpoint
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pairs import NETWORK
from training.candidate_lists import CandidateList, new_parser
from training.reranker.calibrate import SETS, collection, fit_level, found_in

PROPORTIONS = {
    "blend": {"packaged": 0.5, "reads": 0.45, "dense": 2.0},
    "blend_words": {"packaged": 0.7, "reads": 0.55},
    "unread": {"packaged": 1.0},
}
"""Of the judgements on what is read, where its cosine is known and where not, and on what is not read."""

SPREAD = 0.76
"""Share of the fitted spread of the log-odds."""

Lists = list[tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray], np.ndarray]]
"""Of each question: the columns and the truth of what was read, and of the rest."""


def judged(cascade: CascadeReranker, several: Iterable[CandidateList]) -> Iterator[Any]:
    """Yield what the cascade makes of each question; see `Lists`."""
    for one in several:
        rows, columns, packaged, _ = cascade.shortlist(one.question, one.candidates)
        rest = np.setdiff1d(np.arange(len(one.candidates)), rows)
        yield columns, one.relevant[rows], {"packaged": packaged[rest]}, one.relevant[rest]


def fitted(sets: Mapping[str, Lists]) -> dict[str, dict[str, float]]:
    """Return the weights of the three regressions."""
    every = [(one, 1.0 / len(lists)) for lists in sets.values() for one in lists]
    weight = [w for _, w in every]
    weights = {}
    for name, shares in PROPORTIONS.items():
        is_read = name != "unread"
        columns, truth = zip(*(one[:2] if is_read else one[2:] for one, _ in every), strict=True)
        odds = [sum(share * one[key] for key, share in shares.items()) for one in columns]
        spread = fit_level(odds, truth, weight)[0] * (SPREAD if is_read else 1.0)
        offset = offset_of([spread * one for one in odds], truth, weight)
        weights[name] = {key: spread * share for key, share in shares.items()} | {"offset": offset}
        if is_read:
            has = [one["alone"] > 0 for one in columns]
            some = [
                (spread * o[h] + offset, t[h]) for o, t, h in zip(odds, truth, has, strict=True) if h.any()
            ]
            weights[name]["alone"] = offset_of([o for o, _ in some], [t for _, t in some], [1.0] * len(some))
    return weights


def offset_of(odds: Sequence[np.ndarray], truth: Sequence[np.ndarray], weight: Sequence[float]) -> float:
    """Return what is added to log-odds so that as many are expected to be relevant as are."""

    def gap(offset: float) -> float:
        gaps = (np.mean(expit(o + offset) - t) for o, t in zip(odds, truth, strict=True))
        return sum(w * one for w, one in zip(weight, gaps, strict=True))

    return float(brentq(gap, -20.0, 20.0))


def main() -> None:
    options = new_parser(
        "training.reranker_cascade.calibrate", __doc__, network="reranker-cascade"
    ).parse_args()
    cascade = CascadeReranker(options.network, least=0)
    sets = {name: list(judged(cascade, found_in(collection(name, options.data)))) for name in SETS}
    weights = fitted(sets)
    given, tensors = load_checkpoint(options.network)
    config = {"kind": "cascade", "packaged_sha256": packaged_reranker().weights_sha256, **weights}
    config["network_sha256"] = given["network_sha256"]
    save_checkpoint(options.out, config, tensors, {NETWORK: (options.network / NETWORK).read_bytes()})
    print(f"{weights}; saved in {options.out}")


if __name__ == "__main__":
    main()
