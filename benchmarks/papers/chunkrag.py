"""ChunkRAG, Table 2 and Figure 3: what redundancy filtering removes, and what that costs in evidence.

    python -m benchmarks.papers.chunkrag --data DIR

What differs from the paper: PopQA and its retrieved web pages are not at hand, so the candidates are
the best 50 of a dense search over chunks of 100 tokens of the development sets, where repetition is
rarer than in web pages; RGB's news passages repeat each other more. Two filters: by words alone (our
default) and by vectors after a TF-IDF prefilter (the paper's).
"""

import numpy as np

from benchmarks.papers.record import cached_encoder, parse_arguments, save
from precise_rag.evaluation import Corpus, Dataset, load_development_set, score_evidence
from precise_rag.evaluation.tables import format_markdown
from precise_rag.filtering import RedundancyFilter
from precise_rag.index import DenseIndex
from precise_rag.protocols import Encoder

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
PAPER = (20.5, None, None, None, 8.5)
"""Percent of the chunks removed (section 6.1 and Figure 3 give the ends in numbers)."""


def main() -> None:
    args = parse_arguments(__doc__, "rgb,squad,hotpotqa,covidqa", sample=100).parse_args()
    encoder = cached_encoder(args)
    results = {}
    for name in args.sets.split(","):
        dataset = load_development_set(name, args.data).with_evidence().sample(args.sample, args.seed)
        results[name] = measure(dataset, encoder)
    save("chunkrag", args, render(results), {"results": results})


def measure(dataset: Dataset, encoder: Encoder) -> dict:
    """For each filter and threshold: percent of chunks removed, and recall lost in points."""
    corpus = Corpus(dataset.documents)
    index = DenseIndex.build(dataset.documents, encoder, chunks="100 tokens")
    found = [index.search(question.text, 50) for question in dataset.questions]
    results = {}
    for name, chosen in (("words", None), ("vectors", encoder)):
        for threshold in THRESHOLDS:
            kept = [
                RedundancyFilter(threshold=threshold, encoder=chosen).filter(pieces).kept for pieces in found
            ]
            removed = 1 - sum(map(len, kept)) / sum(map(len, found))
            lost = [
                score_evidence(corpus, before, question.evidence, (np.inf,)).recall[0]
                - score_evidence(corpus, after, question.evidence, (np.inf,)).recall[0]
                for question, before, after in zip(dataset.questions, found, kept, strict=True)
            ]
            results[f"{name} {threshold}"] = [round(100 * removed, 2), round(100 * float(np.mean(lost)), 2)]
    return results


def render(results: dict) -> str:
    body = [
        [f"{name}, by {kind}", *("{:.1f} ({:.1f})".format(*values[f"{kind} {t}"]) for t in THRESHOLDS)]
        for name, values in results.items()
        for kind in ("words", "vectors")
    ]
    body.append(["paper", *("" if value is None else f"{value:.1f}" for value in PAPER)])
    return "\n\n".join(
        [
            "# ChunkRAG: redundancy",
            __doc__.split("\n\n", 2)[2],
            "Percent of the 50 candidates removed, and in brackets the evidence lost in points of recall.",
            format_markdown(["set and filter", *(f"> {t}" for t in THRESHOLDS)], body),
        ]
    )


if __name__ == "__main__":
    main()
