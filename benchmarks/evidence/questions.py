"""Held-out questions with what each way of returning evidence sends."""

import pickle
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from precise_rag.evaluation import Positions
from precise_rag.evaluation.measures.evidence import score_evidence
from precise_rag.index import HybridIndex
from precise_rag.rerank import CascadeReranker, rerank
from precise_rag.types import Candidate, Document
from training.candidate_lists import N_CANDIDATES, cached_encoder, read_set
from training.evidence.questions import Asked, QuestionSet

RETURNS = ("mixed", "passage")
"""What else a search returns; the reranked sentences are in the questions already."""


N_RETURNS = 40
"""Questions of a set for which this is measured, at most: passages take long to rerank."""


class Piece(NamedTuple):
    """A piece of text that is sent."""

    doc_id: str
    start: int
    end: int
    score: float
    n_tokens: int
    text: str = ""


Lists = dict[str, list[list[Piece]]]


def other_returns(asked: QuestionSet, options: Namespace) -> Lists:
    """Reranked lists of N_RETURNS questions by what the search returns; kept in `options.cache`."""
    reranker = CascadeReranker()
    stem = asked.name.replace("/", "-")
    key = f"{stem}-{min(len(asked.asked), N_RETURNS)}-{reranker.weights_sha256[:8]}-returns"
    path: Path | None = options.cache and options.cache / f"{key}.pickle"
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    dataset = read_set(f"dev/{asked.name.split('/')[1]}", options.data)
    index = HybridIndex.build(dataset.documents, cached_encoder(options.vectors))
    found: Lists = {returns: [] for returns in RETURNS}
    for question in asked.asked[:N_RETURNS]:
        for returns in RETURNS:
            candidates = index.search(
                question.question, N_CANDIDATES, vector=question.vector, returns=returns
            )
            ranked = rerank(question.question, candidates, reranker, index)
            found[returns].append([piece(c) for c in ranked])
    if path:
        path.write_bytes(pickle.dumps(found))
    return found


def piece(candidate: Candidate) -> Piece:
    """Take what the measures need of a candidate."""
    return Piece(
        candidate.doc_id,
        candidate.start,
        candidate.end,
        candidate.score,
        candidate.n_tokens or 0,
        candidate.text,
    )


def recalls(positions: Positions, asked: list[Asked], lists: list[list[Piece]]) -> np.ndarray:
    """(questions, budgets) share of the evidence within 200, 400, 800 and 1,600 tokens."""
    return np.array(
        [
            score_evidence(positions, ranked, question.evidence).recall
            for question, ranked in zip(asked, lists, strict=True)
        ]
    )


def positions_of(asked: QuestionSet) -> Positions:
    """The documents of a set as one line of tokens."""
    return Positions([Document(key, one.text) for key, one in asked.documents.items()])
