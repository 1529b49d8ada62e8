"""Gradient selection against a fixed number of chunks at equal recall, and how far its settings matter.

    python -m benchmarks.reranking.gradient --data DIR [--reranker cascade] [--plot FILE.svg]
        [--vectors FILE] [--cache DIR]

Candidates are reranked by the packaged reranker or another. Recall is the share of a question's evidence, in
characters within the 50 candidates, that the kept candidates cover. For each setting, the fixed k with
the same mean recall over a set is interpolated between whole numbers; "saved" is the share of its tokens
that the gradient does not send.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.reranking.held_out import held_out, new_parser, save
from precise_rag.rerank import load_reranker, rerank
from precise_rag.selection import GradientSelector
from precise_rag.types import Candidate
from training.candidate_lists import CandidateList

SETTINGS = [
    {"min_k": min_k, "ratio": ratio, "min_score": floor, "share_of_best": of_best}
    for min_k, ratio, (floor, of_best) in product(
        (1, 3, 7),
        (0.1, 0.3, 0.5),
        ((None, None), (0.02, None), (0.1, None), (None, 0.06), (None, 0.125), (None, 0.25), (None, 0.35)),
    )
]


def evidence_in(candidate: Candidate, one: CandidateList) -> set[tuple[str, int]]:
    """The characters of evidence inside a candidate, by document and place."""
    return {
        (e.doc_id, place)
        for e in one.evidence
        if e.doc_id == candidate.doc_id
        for place in range(max(candidate.start, e.start), min(candidate.end, e.end))
    }


class Ranked:
    """A reranked list with the recall and the tokens of its first k candidates, for each k."""

    def __init__(self, one: CandidateList, reranker: str) -> None:
        self.candidates = rerank(one.question, one.candidates, load_reranker(reranker))
        seen: set[tuple[str, int]] = set()
        found = [0]
        for candidate in self.candidates:
            seen |= evidence_in(candidate, one)
            found.append(len(seen))
        self.answerable = bool(seen)
        self.recall = np.array(found) / max(len(seen), 1)
        self.tokens = np.concatenate([[0], np.cumsum([c.n_tokens or 0 for c in self.candidates])])


def fixed_tokens(ranked: Sequence[Ranked], recall: float) -> float:
    """Mean tokens that a fixed k needs for this mean recall, interpolated between whole k."""
    longest = max(len(r.candidates) for r in ranked)
    last = [[min(k, len(r.candidates)) for r in ranked] for k in range(longest + 1)]
    recalls = [float(np.mean([r.recall[i] for r, i in zip(ranked, row, strict=True)])) for row in last]
    tokens = [float(np.mean([r.tokens[i] for r, i in zip(ranked, row, strict=True)])) for row in last]
    return float(np.interp(recall, recalls, tokens))


def measure(ranked: Sequence[Ranked], settings: dict) -> dict[str, float]:
    """Means over the questions for one setting."""
    kept = [len(GradientSelector(**settings).select(r.candidates).kept) for r in ranked]
    recall = float(np.mean([r.recall[k] for r, k in zip(ranked, kept, strict=True)]))
    tokens = float(np.mean([r.tokens[k] for r, k in zip(ranked, kept, strict=True)]))
    fixed = fixed_tokens(ranked, recall)
    return {
        "chunks": float(np.mean(kept)),
        "tokens": tokens,
        "recall": recall,
        "fixed tokens": fixed,
        "saved": 1.0 - tokens / fixed if fixed else 0.0,
        "nothing": float(np.mean([k == 0 for k in kept])),
    }


def plot(chosen: dict[str, Ranked], settings: dict, path: Path) -> None:
    """Score curves of one question per set, with the cut."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    for name, ranked in chosen.items():
        scores = [c.score for c in ranked.candidates]
        kept = len(GradientSelector(**settings).select(ranked.candidates).kept)
        (line,) = axes.plot(range(1, len(scores) + 1), scores, label=name)
        axes.plot([kept], [scores[kept - 1]] if kept else [0.0], "o", color=line.get_color())
    axes.set(xlabel="rank", ylabel="probability", yscale="log", title=f"Scores and cuts (dots), {settings}")
    axes.legend(fontsize="small")
    figure.savefig(path, bbox_inches="tight")


def main() -> None:
    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("--reranker", default="packaged", help="(%(default)s)")
    parser.add_argument("--plot", type=Path, help="draw score curves with cuts into this file")
    options = parser.parse_args()
    rows, chosen = [], {}
    for name, kind, lists in held_out(options):
        every = [Ranked(one, options.reranker) for one in lists if one.candidates]
        ranked = [one for one in every if one.answerable]
        chosen[f"{name}, {kind}"] = ranked[len(ranked) // 2]
        named = {"set": name, "kind": kind}
        rows += [{**named, **settings, **measure(ranked, settings)} for settings in SETTINGS]
    for kind in options.kinds:
        for settings in SETTINGS:
            same = [r for r in rows if r["kind"] == kind and all(r[key] == v for key, v in settings.items())]
            mean = {key: float(np.mean([r[key] for r in same])) for key in list(same[0])[2 + len(settings) :]}
            rows.append({"set": "mean of sets", "kind": kind, **settings, **mean})
    name = "gradient" if options.reranker == "packaged" else f"gradient-{options.reranker}"
    save(__spec__.name, name, "Gradient selection against a fixed number of chunks", options, rows)
    if options.plot:
        plot(chosen, {"min_k": 7, "ratio": 0.3}, options.plot)


if __name__ == "__main__":
    main()
