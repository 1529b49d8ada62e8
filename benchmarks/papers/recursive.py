"""Recursive retrieval, Tables I to III: word filter and then sentence vectors, against vectors alone.

    python -m benchmarks.papers.recursive --data DIR

What differs from the paper: all-MiniLM-L6-v2 for bge-large-en-v1.5; SQuAD 1.1 for 2.0 and FairytaleQA
for NarrativeQA; two CPU cores for an A100; the naive search here is already one matrix product over
all vectors, where the paper's 5 questions a second tell of something slower. A hit is a passage
(paragraph) with evidence, whatever unit was found.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.papers.record import cached_encoder, parse_arguments, save
from precise_rag.evaluation import Corpus, Dataset, Passages, load_development_set, ranking_scores
from precise_rag.evaluation.tables import format_markdown
from precise_rag.index import SentenceContextIndex, WordSentenceIndex
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate

MEASURES = ("Hits@1", "Hits@3", "Hits@10", "MRR@1", "MRR@3", "MRR@10")
PAPER = {
    "SQuAD2.0, naive": (0.70, 0.86, 0.95, 0.70, 0.77, 0.79),
    "SQuAD2.0, recursive": (0.72, 0.89, 0.96, 0.72, 0.79, 0.81),
    "HotpotQA, naive": (0.80, 0.95, 0.98, 0.80, 0.87, 0.88),
    "HotpotQA, recursive": (0.80, 0.95, 0.98, 0.80, 0.87, 0.88),
    "NarrativeQA, naive": (0.59, 0.64, 0.74, 0.59, 0.58, 0.60),
    "NarrativeQA, recursive": (0.62, 0.72, 0.80, 0.62, 0.66, 0.68),
}
PAPER_SPEED = {"NarrativeQA": (5.50, 82.74), "HotpotQA": (5.25, 34.29)}


def main() -> None:
    args = parse_arguments(__doc__, "squad,hotpotqa,fairytaleqa").parse_args()
    encoder = cached_encoder(args)
    results = {}
    for name in args.sets.split(","):
        dataset = load_development_set(name, args.data).with_evidence().sample(args.sample, args.seed)
        results[name] = measure(dataset, encoder)
    save("recursive", args, render(results), {"results": results})


def measure(dataset: Dataset, encoder: Encoder) -> dict:
    """Hits, MRR and questions a second of each method."""
    corpus = Corpus(dataset.documents)
    passages = Passages(corpus)
    relevant = {question.id: passages.ids(question.evidence) for question in dataset.questions}
    vectors = encoder.encode_queries([question.text for question in dataset.questions])
    plain = SentenceContextIndex.build(dataset.documents, encoder, alpha=1.0)
    words = WordSentenceIndex.build(dataset.documents, encoder)
    capped = WordSentenceIndex.build(dataset.documents, encoder, max_candidates=200)
    results = {}
    for name, search in (
        ("naive", plain.search),
        ("recursive", words.search),
        ("recursive, 200 candidates", capped.search),
    ):
        found, per_second = search_all(dataset, vectors, search)
        ranked = {id: passages.ids(pieces) for id, pieces in found.items()}
        scores = ranking_scores(relevant, ranked)
        results[name] = {measure: round(float(scores[measure].mean()), 3) for measure in MEASURES}
        results[name]["questions/s"] = round(per_second, 1)
    results["sentences"] = len(plain)
    return results


def search_all(
    dataset: Dataset, vectors: np.ndarray, search: Callable[..., Sequence[Candidate]]
) -> tuple[dict, float]:
    """What was found, and how many questions a second once the query is encoded."""
    search(dataset.questions[0].text, 30, vector=vectors[0])
    started = time.perf_counter()
    found = {
        question.id: search(question.text, 30, vector=vector)
        for question, vector in zip(dataset.questions, vectors, strict=True)
    }
    return found, len(found) / (time.perf_counter() - started)


def render(results: dict) -> str:
    body = [
        [
            f"{name}, {method}",
            *(f"{scores[measure]:.2f}" for measure in MEASURES),
            f"{scores['questions/s']:.0f}",
        ]
        for name, methods in results.items()
        for method, scores in methods.items()
        if isinstance(scores, dict)
    ]
    body += [[f"paper: {name}", *(f"{value:.2f}" for value in values), ""] for name, values in PAPER.items()]
    sizes = ", ".join(f"{name} {methods['sentences']:,}" for name, methods in results.items())
    return "\n\n".join(
        [
            "# Recursive retrieval: words, then sentences",
            __doc__.split("\n\n", 2)[2],
            format_markdown(["set and method", *MEASURES, "questions/s"], body),
            f"Sentences searched: {sizes}. The paper's speeds on one A100: NarrativeQA 5.5 naive and 82.7 "
            "recursive, HotpotQA 5.3 and 34.3 questions a second.",
        ]
    )


if __name__ == "__main__":
    main()
