"""What each part of ours buys and costs: added one after the other, then taken away one by one.

    python -m benchmarks.ablation --data DIR [--sample 40]

Each line of the first table switches one part on and leaves the rest. Points of recall gained with 200 / 400
/ 800 / 1,600 tokens sent, mean of the sets (± half of the 95 % interval), then set by set with 400 tokens
sent; **bold**: p < 0.05 in a paired test, documents flipped whole. What it costs: tokens of all that is kept,
and milliseconds a question.
"""

from collections.abc import Sequence
from typing import Any

from benchmarks.harness.datasets import question_sets
from benchmarks.harness.evidence import BUDGETS
from benchmarks.harness.run import (
    LEGEND,
    SHARES,
    Measured,
    compared,
    half,
    mean,
    measure,
    preset,
    search,
    sections,
)
from benchmarks.harness.statistics import SIGNIFICANT, Comparison
from benchmarks.harness.tables import about, cached_encoder, save, sets_parser, table
from benchmarks.peers import SETS, Units, recursive, segments
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.selection import GradientSelector

PACKED = {"kind": DenseIndex, "chunks": "200 tokens"}
ALL = {"selector": GradientSelector(min_k=1, ratio=0.0)}
"""All that is ranked is kept: the budget alone decides what is sent."""

PIPELINES = {
    "plain: 200 tokens, dense": search(Units(recursive(200))),
    "+ segmentation": search(Units(segments)),
    "sentences packed to 200": search(**PACKED, chunk_vectors="encode"),
    "sentences packed to 200, in context": search(**PACKED, chunk_vectors="context"),
    "+ sentences alone": search(SentenceContextIndex, alpha=1.0),
    "+ context": search(SentenceContextIndex),
    "+ BM25 (hybrid)": search(HybridIndex, returns="sentence"),
    "hybrid, best passage": search(HybridIndex),
    "+ packaged reranker": search(HybridIndex, returns="sentence", reranker="packaged"),
    "+ cascade in its place": search(HybridIndex, returns="sentence", reranker="cascade"),
    "cascade without BM25": search(SentenceContextIndex, reranker="cascade"),
    "word then sentence": search(WordSentenceIndex),
    "whole": preset(**ALL),
    "whole - context": preset(index={"alpha": 1.0}, **ALL),
    "whole - dense": preset(index={"dense_weight": 0.0, "adaptive": False}, **ALL),
    "whole - cascade": preset(reranker="packaged", **ALL),
    "whole - redundancy": preset(redundancy=None, **ALL),
    "whole - growth": preset(evidence=None, **ALL),
    "whole, selected by worth (as it comes)": preset(),
    "whole, gradient selection (SAGE)": preset(selector=GradientSelector()),
}
STEPS = {
    "segmentation (chunks, dense)": ("+ segmentation", "plain: 200 tokens, dense"),
    "vectors in context (chunks, dense)": ("sentences packed to 200, in context", "sentences packed to 200"),
    "sentence context": ("+ context", "+ sentences alone"),
    "sentence context, taken from the whole": ("whole", "whole - context"),
    "hybrid: BM25 beside dense": ("+ BM25 (hybrid)", "+ context"),
    "hybrid: BM25 beside dense, reranked": ("+ cascade in its place", "cascade without BM25"),
    "dense, taken from the search of the whole": ("whole", "whole - dense"),
    "returning the best passage, not sentences": ("hybrid, best passage", "+ BM25 (hybrid)"),
    "rerank, packaged": ("+ packaged reranker", "+ BM25 (hybrid)"),
    "rerank, cascade": ("+ cascade in its place", "+ BM25 (hybrid)"),
    "cascade, taken from the whole": ("whole", "whole - cascade"),
    "redundancy filter, taken from the whole": ("whole", "whole - redundancy"),
    "growth of evidence, taken from the whole": ("whole", "whole - growth"),
    "selection by worth": ("whole, selected by worth (as it comes)", "whole"),
    "gradient selection (SAGE)": ("whole, gradient selection (SAGE)", "whole"),
}
"""A part: the pipeline with it, and the one without it."""


def main() -> None:
    args = sets_parser(__spec__.name, __doc__, SETS, sample=200).parse_args()
    encoder = cached_encoder(args)
    found = [measure(PIPELINES, dataset, encoder) for dataset in question_sets(args)]
    parts = ["## What each part buys and costs", about(__doc__), steps(found)]
    save("ablation", __spec__.name, args, "Ablation", LEGEND, *parts, *sections(found))


def steps(sets: Sequence[Measured]) -> str:
    """What each part buys and costs."""
    rows = []
    for part, (name, other) in STEPS.items():
        row: dict[str, Any] = {"part": part}
        for budget, share in zip(BUDGETS, SHARES, strict=True):
            gain = compared(sets, name, other, share)
            row[str(budget)] = f"{points(gain)} ± {half(gain.difference):.1f}"
        for one in sets:
            row[f"{one.dataset.name}@400"] = points(compared([one], name, other, "recall@400"))
        for measure_, form in (("tokens", "+,.0f"), ("ms", "+.1f")):
            row[measure_] = format(mean(sets, name, measure_) - mean(sets, other, measure_), form)
        rows.append(row)
    return table(rows)


def points(gain: Comparison) -> str:
    """A gain in points, bold if it is significant."""
    text = f"{100 * gain.difference.mean:+.1f}"
    return f"**{text}**" if gain.p_value < SIGNIFICANT else text


if __name__ == "__main__":
    main()
