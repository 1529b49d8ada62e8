"""Recursive retrieval, Tables I to III: word filter and then sentence vectors, against vectors alone.

    python -m benchmarks.papers.recursive --data DIR [--sizes 10000,20000,45000] [--encoder NAME]

What differs from the paper: all-MiniLM-L6-v2 for bge-large-en-v1.5 (--encoder takes another); SQuAD
1.1 for 2.0 and FairytaleQA for NarrativeQA; two CPU cores for an A100; the naive search here is already
one matrix product over all vectors, while the paper's answers 5 questions a second. A hit is a passage
(paragraph) with evidence, whatever unit was found. --sizes adds documents of other sets, and then
Wikipedia articles, to SQuAD's until the collection has that many sentences.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import ir_measures
import numpy as np

from benchmarks.harness.datasets import Dataset, load_development_set, real_documents
from benchmarks.harness.evidence import Positions, RankedPassages
from benchmarks.harness.run import ranking
from benchmarks.harness.tables import about, cached_encoder, save, sets_parser, table
from precise_rag.index import DenseIndex, WordSentenceIndex
from precise_rag.protocols import Encoder
from precise_rag.sentences import split_sentences
from precise_rag.types import Candidate

MEASURES = {
    f"{name}@{k}": measure @ k
    for name, measure in (("Hits", ir_measures.Success), ("MRR", ir_measures.RR))
    for k in (1, 3, 10)
}
PAPER = {
    "SQuAD2.0, naive": (0.70, 0.86, 0.95, 0.70, 0.77, 0.79),
    "SQuAD2.0, recursive": (0.72, 0.89, 0.96, 0.72, 0.79, 0.81),
    "HotpotQA, naive": (0.80, 0.95, 0.98, 0.80, 0.87, 0.88),
    "HotpotQA, recursive": (0.80, 0.95, 0.98, 0.80, 0.87, 0.88),
    "NarrativeQA, naive": (0.59, 0.64, 0.74, 0.59, 0.58, 0.60),
    "NarrativeQA, recursive": (0.62, 0.72, 0.80, 0.62, 0.66, 0.68),
}
PAPER_SPEED = {
    "HotpotQA, naive": "5.3",
    "HotpotQA, recursive": "34.3",
    "NarrativeQA, naive": "5.5",
    "NarrativeQA, recursive": "82.7",
}
"""Questions a second on one A100."""


METHODS: dict[str, dict[str, int]] = {
    "recursive": {},
    "recursive, 200 candidates": {"max_candidates": 200},
    "recursive, 2 shared words": {"min_overlap": 2},
}


def main() -> None:
    parser = sets_parser(__spec__.name, __doc__, "squad,hotpotqa,fairytaleqa", sample=300)
    parser.add_argument("--sizes", default="10000,20000,45000", help="of SQuAD's set (%(default)s)")
    args = parser.parse_args()
    encoder = cached_encoder(args)
    results = {}
    for name in args.sets.split(","):
        dataset = load_development_set(name, args.data).with_evidence().sample(args.sample, args.seed)
        results[name] = measure(dataset, encoder)
        if name == "squad":
            for size in filter(None, args.sizes.split(",")):
                larger = among(dataset, int(size), args.data)
                results[f"squad among {int(size):,}"] = measure(larger, encoder)
    title = "Recursive retrieval: words, then sentences"
    save("recursive", __spec__.name, args, title, about(__doc__), *render(results))


def among(dataset: Dataset, n_sentences: int, data: str) -> Dataset:
    """The same questions in a larger collection."""
    documents, n = [], 0
    for document in real_documents(data):
        if n >= n_sentences:
            break
        documents.append(document)
        n += len(split_sentences(document.text))
    return replace(dataset, documents=tuple(documents))


def measure(dataset: Dataset, encoder: Encoder) -> dict:
    """Hits, MRR and questions a second of each method."""
    passages = RankedPassages(Positions(dataset.documents))
    vectors = encoder.encode_queries([question.text for question in dataset.questions])
    plain = DenseIndex.build(dataset.documents, encoder, chunks="sentences")
    results: dict = {"sentences": len(plain)}
    for name in ("naive", *METHODS):
        index: DenseIndex | WordSentenceIndex = plain
        share = 1.0
        if name != "naive":
            index = by_word = WordSentenceIndex.build(dataset.documents, encoder, **METHODS[name])
            passing = [len(by_word.candidate_rows(question.text)) for question in dataset.questions]
            share = float(np.mean(passing)) / len(index)
        found, per_second = search_all(dataset, vectors, index.search)
        pairs = [(pieces, q.evidence) for pieces, q in zip(found, dataset.questions, strict=True)]
        scores = {key: float(np.mean(ranking(passages, pairs, one))) for key, one in MEASURES.items()}
        results[name] = {**scores, "compared %": 100 * share, "questions/s": per_second}
        print(dataset.name, len(plain), name, results[name], flush=True)
    return results


def search_all(
    dataset: Dataset, vectors: np.ndarray, search: Callable[..., Sequence[Candidate]]
) -> tuple[list[Sequence[Candidate]], float]:
    """Candidates of each question, and questions a second without encoding."""
    search(dataset.questions[0].text, 30, vector=vectors[0])
    started = time.perf_counter()
    found = [
        search(question.text, 30, vector=vector)
        for question, vector in zip(dataset.questions, vectors, strict=True)
    ]
    return found, len(found) / (time.perf_counter() - started)


def render(results: dict) -> list[str]:
    rows = [
        {"set and method": f"{name}, {method}"}
        | {measure: f"{scores[measure]:.2f}" for measure in MEASURES}
        | {"compared (%)": scores["compared %"], "questions/s": round(scores["questions/s"])}
        for name, methods in results.items()
        for method, scores in methods.items()
        if method != "sentences"
    ]
    for name, values in PAPER.items():
        cells = {measure: f"{value:.2f}" for measure, value in zip(MEASURES, values, strict=True)}
        rows.append({"set and method": f"paper: {name}", **cells, "questions/s": PAPER_SPEED.get(name, "")})
    sizes = ", ".join(f"{name} {methods['sentences']:,}" for name, methods in results.items())
    return [
        table(rows),
        f"Sentences: {sizes}. Compared: the share of them that passes the word filter and is compared by "
        "meaning. Questions a second are without encoding the question.",
    ]


if __name__ == "__main__":
    main()
