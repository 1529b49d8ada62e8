"""How well each reranker orders the same sentences in six languages, and when the cascade steps back.

    python -m benchmarks.reranking.languages --data DIR [--vectors FILE] [--cache DIR]

Questions and paragraphs of XQuAD, on which nothing was trained. "recall" is the share of questions
with evidence among the best sentences of that many tokens. "cascade, always read" is the cascade without
the check of the script. Gains are over the packaged reranker, questions redrawn in pairs.
"""

from dataclasses import replace

import numpy as np

from benchmarks.reranking.held_out import new_parser, save
from benchmarks.reranking.measure import mean_difference, quality
from precise_rag.rerank.cascade import cascade_reranker
from precise_rag.rerank.packaged import packaged_reranker
from training.candidate_lists import CandidateList, cached_encoder, candidate_lists, read_set

LANGUAGES = ("en", "de", "es", "ru", "ar", "zh")
BUDGETS = (200, 400, 800)

RANKERS = {
    "packaged": lambda one: packaged_reranker().score(one.question, one.candidates),
    "retrieval": lambda one: np.array([c.score for c in one.candidates]),
    "cascade": lambda one: cascade_reranker().score(one.question, one.candidates),
    "cascade, always read": lambda one: cascade_reranker().read(one.question, one.candidates),
}
"""The rankers; all are compared with the first."""


def recall(scores: np.ndarray, one: CandidateList, budget: int) -> float:
    """Return 1 if a relevant candidate is among the best ones of `budget` tokens, else 0."""
    left = budget
    for row in np.argsort(-scores, kind="stable"):
        n_tokens = one.candidates[row].n_tokens or 0
        if n_tokens <= left:
            left -= n_tokens
            if one.relevant[row]:
                return 1.0
    return 0.0


def main() -> None:
    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("--questions", type=int, default=120, help="of each language (%(default)s)")
    options = parser.parse_args()
    encoder = cached_encoder(options.vectors)
    rows = []
    for language in LANGUAGES:
        dataset = read_set(f"dev/xquad/{language}", options.data).sample(options.questions, seed=1)
        dataset = replace(dataset, name=f"languages/{language}")
        lists = [o for o in candidate_lists(dataset, "sentences", encoder, options.cache) if o.candidates]
        found = {}
        for name, rank in RANKERS.items():
            both = [(rank(one), one) for one in lists]
            found[name] = np.array([quality(scores, one.relevant)[0] for scores, one in both])
            gain, low, high = mean_difference({"": found["packaged"]}, {"": found[name]})
            row = {"language": language, "ranker": name, "questions": len(lists)}
            row |= {"nDCG@10": float(found[name].mean()), "gain": gain, "low": low, "high": high}
            rows.append(
                row | {f"recall@{b}": float(np.mean([recall(*pair, b) for pair in both])) for b in BUDGETS}
            )
            print(rows[-1], flush=True)
    save(__spec__.name, "languages", "Rerankers in six languages", options, rows)


if __name__ == "__main__":
    main()
