"""Training examples of the cross-encoder: questions with a few candidates, some of them relevant."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pairs import Piece
from precise_rag.types import Candidate

N_SHOWN = {"sentences": 6, "bm25": 5, "passages": 4, "dense": 4}
"""Candidates of one example, by kind of list; fewer if there are fewer."""

MOST_RELEVANT = 3
"""Relevant candidates of one example, at most."""

TOP = 20
"""Two thirds of the negatives are drawn from the candidates that the cascade would read: this many that
the packaged reranker puts first. The rest is drawn from the whole list."""


class Example(NamedTuple):
    """A question with some candidates, and which are relevant.

    pieces: the candidates with the text around them, where it is known; above each is its document's title.
    kind: of list. source: the set of the question, such as "train/nq", or "weak/" and the documents' source.
    """

    question: str
    pieces: tuple[Piece, ...]
    relevant: np.ndarray
    kind: str
    source: str


def shown(
    question: str,
    candidates: Sequence[Candidate],
    relevant: np.ndarray,
    kind: str,
    source: str,
    random: np.random.Generator,
    *,
    unanswered: bool = False,
) -> Example | None:
    """Draw the candidates of an example from a list; None without two others than the relevant ones.

    unanswered: whether none may be relevant; otherwise, None if none is.
    """
    good, bad = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    if (not len(good) and not unanswered) or len(bad) < 2:
        return None
    rank = np.argsort(np.argsort(-packaged_reranker().score(question, candidates), kind="stable"))
    n_shown = N_SHOWN[kind]
    good = random.permutation(good)[: min(MOST_RELEVANT, n_shown // 2)]
    near = random.permutation(bad[rank[bad] < TOP])[: -(-(n_shown - len(good)) * 2 // 3)]
    far = random.permutation(np.setdiff1d(bad, near))[: n_shown - len(good) - len(near)]
    rows = np.concatenate([good, near, far])
    pieces = tuple(
        Piece(one.text, one.metadata.get("title") or "", one.before, one.after)
        for one in (candidates[row] for row in rows)
    )
    return Example(question, pieces, relevant[rows], kind, source)
