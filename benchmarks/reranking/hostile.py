"""How far hostile documents move the scores of others.

    python -m benchmarks.reranking.hostile --data DIR [--vectors FILE] [--cache DIR]

Hostile texts repeat the question before the text of the best honest candidate, with higher retrieval scores
than any other. The list keeps its length: they push the last ones out. "best": mean probability of the best
honest candidate without them. "change": of its probability, on the mean and at worst. "another first": share
of the questions in which another honest candidate is the best one then.
"""

import math
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.record import printed
from benchmarks.reranking.held_out import held_out, new_parser, save
from precise_rag.protocols import Reranker
from precise_rag.rerank.cascade import cascade_reranker
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.types import Candidate
from training.candidate_lists import CandidateList

ATTACKS = ((1, 1), (2, 1), (5, 1), (1, 10))
"""Hostile documents in a list, and texts of each."""

LEAST = 20
"""Candidates of a list, at least."""


def attacked(one: CandidateList, best: Candidate, n_documents: int, n_texts: int) -> list[Candidate]:
    """Return the list with hostile texts in front, as long as before."""
    text = f"{one.question} {best.text}"
    first = one.candidates[0]
    highest = {
        name: max(c.scores.get(name, -np.inf) for c in one.candidates) * 1.3 + 0.01 for name in first.scores
    }
    hostile = [
        replace(
            first,
            doc_id=f"hostile {document}",
            start=number * 1000,
            end=number * 1000 + len(text),
            text=text,
            score=first.score + 0.01,
            scores=highest,
        )
        for document in range(n_documents)
        for number in range(n_texts)
    ]
    return [*hostile, *one.candidates][: len(one.candidates)]


def changes(lists: Sequence[CandidateList], reranker: Reranker, attack: tuple[int, int]) -> dict[str, float]:
    """Return what hostile texts in each list do to the candidates that it had."""
    before, moved, another = [], [], []
    for one in lists:
        alone = reranker.score(one.question, one.candidates)
        first = int(np.argmax(alone))
        with_them = attacked(one, one.candidates[first], *attack)
        scores = reranker.score(one.question, with_them)[math.prod(attack) :]
        rest = np.append(scores, np.zeros(len(alone) - len(scores)))
        before.append(alone[first])
        moved.append(rest[first] - alone[first])
        another.append(first != int(np.argmax(rest)))
    return {
        "best": float(np.mean(before)),
        "change": float(np.mean(moved)),
        "worst": float(np.min(moved)),
        "another first": float(np.mean(another)),
    }


def measure(options: Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each set, reranker and attack."""
    rankers = {"packaged": packaged_reranker(), "cascade": cascade_reranker()}
    for name, _, lists in held_out(options):
        some = [one for one in lists if len(one.candidates) > LEAST][: options.questions]
        for (ranker, reranker), attack in product(rankers.items(), ATTACKS):
            row = {"set": name, "questions": len(some), "reranker": ranker, "documents": attack[0]}
            yield row | {"texts of each": attack[1], **changes(some, reranker, attack)}


def main() -> None:
    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("--questions", type=int, default=25, help="of each set (%(default)s)")
    parser.set_defaults(kinds=["sentences"])
    options = parser.parse_args()
    rows = printed(measure(options))
    save(__spec__.name, "hostile", "Hostile documents among the candidates", options, rows)


if __name__ == "__main__":
    main()
