"""How much the redundancy filter removes at each threshold, and how much evidence goes with it.

    python -m benchmarks.reranking.redundancy --data DIR [--vectors FILE] [--cache DIR]

ChunkRAG (section 6.1) reports 20.5 % removed at 0.5 down to 8.5 % at 0.9. "lost" is the share of the
evidence characters covered by the candidates that no kept candidate covers, although a kept one may say
the same in other places.
"""

import time
from collections.abc import Iterable

import numpy as np

from benchmarks.reranking.gradient import evidence_in
from benchmarks.reranking.held_out import held_out, new_parser, save
from precise_rag.filtering import RedundancyFilter
from precise_rag.rerank import load_reranker, rerank
from precise_rag.types import Candidate
from training.candidate_lists import CandidateList, cached_encoder

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def covered(candidates: Iterable[Candidate], one: CandidateList) -> int:
    """Characters of evidence inside the candidates, each counted once."""
    return len(set().union(*(evidence_in(c, one) for c in candidates)))


def main() -> None:
    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("--questions", type=int, default=200, help="of each set at most")
    options = parser.parse_args()
    vectors = cached_encoder(options.vectors)
    rows = []
    for name, kind, lists in held_out(options):
        ranked = [
            (one, rerank(one.question, one.candidates, load_reranker()))
            for one in lists[: options.questions]
            if one.candidates
        ]
        for by, used in (("TF-IDF", None), ("vectors", vectors)):
            for threshold in THRESHOLDS:
                redundancy = RedundancyFilter(similarity_threshold=threshold, encoder=used)
                started = time.process_time()
                kept = [redundancy.filter(candidates).kept for _, candidates in ranked]
                ms = (time.process_time() - started) * 1e3 / len(ranked)
                whole = sum(covered(candidates, one) for one, candidates in ranked)
                left = sum(covered(k, one) for k, (one, _) in zip(kept, ranked, strict=True))
                removed = np.mean([1 - len(k) / len(c) for k, (_, c) in zip(kept, ranked, strict=True)])
                rows.append(
                    {
                        "set": name,
                        "kind": kind,
                        "by": by,
                        "threshold": threshold,
                        "removed": float(removed),
                        "lost": 1 - left / whole if whole else 0.0,
                        "ms": ms,
                    }
                )
    save(__spec__.name, "redundancy", "What the redundancy filter removes", options, rows)


if __name__ == "__main__":
    main()
