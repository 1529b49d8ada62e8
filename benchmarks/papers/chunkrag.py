"""ChunkRAG, Tables 2 and 3, Figures 3 and 4: what filtering removes, what stays, and what it costs.

    python -m benchmarks.papers.chunkrag --data DIR

What differs from the paper: PopQA and its web pages were not at hand, so the candidates are the
best 50 of a dense search over chunks of 100 tokens of the development sets, where repetition is rarer than
in web pages; RGB's news passages repeat each other more. Two filters: by words alone (our default) and by
vectors after a TF-IDF prefilter (the paper's). Similarity is the mean cosine between all pairs of
candidates, by the encoder's vectors; the paper does not name its encoder. Length is in words. In Table 3
the packaged reranker's probability replaces the scores of a language model.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.harness.datasets import Dataset, question_sets
from benchmarks.harness.evidence import Positions, evidence_recall
from benchmarks.harness.tables import about, cached_encoder, save, sets_parser, table
from precise_rag.candidate_filters import DynamicThreshold, RedundancyFilter
from precise_rag.index import DenseIndex
from precise_rag.protocols import Encoder
from precise_rag.rerank import load_reranker, rerank
from precise_rag.types import Candidate

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
PAPER_REMOVED = ("20.5", "", "", "", "8.5")
"""Percent of the chunks removed (section 6.1 and Figure 3 give the ends in numbers)."""
PAPER_TABLE_2 = ("0.210, 36", "0.216, 36", "0.222, 36", "0.226, 35", "0.229, 36")
"""Similarity after, and mean length, by threshold; 36, 24, 18, 16 and 12 chunks are removed."""
PAPER_RELEVANCE = {"naive": 0.180, "filtered": 0.467}
"""Table 3: mean relevance of what the naive retriever and ChunkRAG give."""

Lists = Sequence[Sequence[Candidate]]


def main() -> None:
    args = sets_parser(__spec__.name, __doc__, "rgb,squad,hotpotqa,covidqa", sample=100).parse_args()
    encoder = cached_encoder(args)
    results = {dataset.name: measure(dataset, encoder) for dataset in question_sets(args)}
    save(
        "chunkrag",
        __spec__.name,
        args,
        "ChunkRAG: redundancy and relevance",
        about(__doc__),
        *render(results),
    )


def measure(dataset: Dataset, encoder: Encoder) -> dict:
    """Chunks removed, recall lost and similarity left by filter and threshold; relevance after filtering."""
    corpus = Positions(dataset.documents)
    index = DenseIndex.build(dataset.documents, encoder, chunks="100 tokens")
    found = [index.search(question.text, 50) for question in dataset.questions]
    results: dict = {"similarity before": round(float(np.mean([similarity(p, encoder) for p in found])), 4)}
    for name, chosen in (("words", None), ("vectors", encoder)):
        for threshold in THRESHOLDS:
            chunk_filter = RedundancyFilter(similarity_threshold=threshold, encoder=chosen)
            kept = [chunk_filter.filter(pieces).kept for pieces in found]
            removed = 1 - sum(map(len, kept)) / sum(map(len, found))
            results[f"{name} {threshold}"] = {
                "removed %": round(100 * removed, 2),
                "recall lost": lost(corpus, dataset, found, kept),
                "words a chunk": round(float(np.mean([len(c.text.split()) for p in kept for c in p])), 2),
                "similarity after": round(float(np.mean([similarity(p, encoder) for p in kept])), 4),
            }
    results["relevance"] = relevance(dataset, corpus, found)
    return results


def lost(corpus: Positions, dataset: Dataset, before: Lists, after: Lists) -> float:
    """Percent of all evidence that is in the candidates before filtering and not in those after it."""

    def recall(lists: Lists) -> float:
        pairs = zip(dataset.questions, lists, strict=True)
        return float(np.mean([evidence_recall(corpus, c, q.evidence, (np.inf,)) for q, c in pairs]))

    return round(100 * (recall(before) - recall(after)), 2)


def similarity(pieces: Sequence[Candidate], encoder: Encoder) -> float:
    """Mean cosine between the pairs of candidates."""
    if len(pieces) < 2:
        return 0.0
    vectors = encoder.encode([piece.text for piece in pieces])
    total = float((vectors.sum(axis=0) ** 2).sum()) - len(vectors)
    return total / (len(vectors) * (len(vectors) - 1))


def relevance(dataset: Dataset, corpus: Positions, found: Lists) -> dict:
    """Mean relevance and number of candidates before and after filtering, and the recall lost.

    Filtering drops repetitions and candidates below the paper's threshold.
    """
    reranker, chunk_filter = load_reranker("packaged"), RedundancyFilter()
    threshold = DynamicThreshold(min_score=0.0, ceiling=1.0)
    scored = [rerank(q.text, pieces, reranker) for q, pieces in zip(dataset.questions, found, strict=True)]
    kept = []
    for pieces in scored:
        once = chunk_filter.filter(pieces).kept
        limit = threshold.of([piece.score for piece in once]).value
        kept.append([piece for piece in once if piece.score >= limit])
    row = {}
    for name, lists in (("naive", scored), ("filtered", kept)):
        row[name] = round(float(np.mean([c.score for pieces in lists for c in pieces])), 4)
        row[f"chunks, {name}"] = round(float(np.mean([len(pieces) for pieces in lists])), 1)
    return {**row, "recall lost": lost(corpus, dataset, scored, kept)}


def render(results: dict) -> list[str]:
    over = [f"> {t}" for t in THRESHOLDS]
    removed, left, relevant = [], [], []
    for name, values in results.items():
        for kind in ("words", "vectors"):
            cells = [values[f"{kind} {t}"] for t in THRESHOLDS]
            shares = [f"{one['removed %']:.1f} ({one['recall lost']:.1f})" for one in cells]
            removed.append({"set and filter": f"{name}, by {kind}", **dict(zip(over, shares, strict=True))})
        after = [f"{one['similarity after']:.3f}, {one['words a chunk']:.0f}" for one in cells]
        head = {"set": f"{name}, by vectors", "before": f"{values['similarity before']:.3f}"}
        left.append(head | dict(zip(over, after, strict=True)))
        relevant.append({"set": name} | {key: f"{value:.3f}" for key, value in values["relevance"].items()})
    removed.append({"set and filter": "paper", **dict(zip(over, PAPER_REMOVED, strict=True))})
    head = {"set": "paper (chunks removed: 36, 24, 18, 16, 12)", "before": "0.240"}
    left.append(head | dict(zip(over, PAPER_TABLE_2, strict=True)))
    relevant.append({"set": "paper"} | {key: f"{value:.3f}" for key, value in PAPER_RELEVANCE.items()})
    return [
        "## Figure 3: percent of the 50 candidates removed, and in brackets the recall lost in points",
        table(removed),
        "## Table 2 and Figure 4: similarity of the candidates before and after, and words a chunk",
        table(left),
        "In the paper and here filtering makes what is left less alike and leaves its length as it was.",
        "## Table 3: mean relevance of what the retriever gives and of what is left",
        table(relevant),
    ]


if __name__ == "__main__":
    main()
