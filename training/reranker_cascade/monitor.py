"""How well a network in training orders documents that were kept out."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pairs import Piece
from precise_rag.types import FloatArray
from training.candidate_lists import CandidateList
from training.reranker_cascade.build import kept_lists

N_LISTS = 8
"""Lists of each set, at most."""

N_READ = 20
_DISCOUNT = 1.0 / np.log2(np.arange(2, 12))

Logits = Callable[[str, Sequence[Piece]], FloatArray]
"""Takes a question and n pieces of text, and returns their (n,) logits."""


def monitored(logits: Logits, folder: Path) -> str:
    """Return a line with the mean nDCG@10 of a network's own logits, of sentences kept out, by set.

    The lists are the candidates that the cascade would read. nDCG@10 knows only what is among them.
    """
    found = {}
    for name, lists in kept_lists(folder, "sentences").items():
        values = (_ndcg(logits, one) for one in lists[:N_LISTS])
        if known := [value for value in values if value is not None]:
            found[name] = np.mean(known)
    by_set = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    return f"kept out: {np.mean(list(found.values() or [0])):.4f}; {by_set}"


def _ndcg(logits: Logits, one: CandidateList) -> float | None:
    rows = np.argsort(-packaged_reranker().score(one.question, one.candidates), kind="stable")[:N_READ]
    truth = one.relevant[rows]
    if not truth.any() or truth.all():
        return None
    read = [one.candidates[row] for row in rows]
    scores = logits(one.question, [Piece(c.text, before=c.before, after=c.after) for c in read])
    top = truth[np.argsort(-scores, kind="stable")[:10]]
    return float((top * _DISCOUNT[: len(top)]).sum() / _DISCOUNT[: min(10, int(truth.sum()))].sum())
