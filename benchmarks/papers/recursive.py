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

import numpy as np

from benchmarks.questions import real_documents
from benchmarks.record import about, add_encoder, cached_encoder, made, parse_arguments, save
from benchmarks.tables import table
from precise_rag.evaluation import Dataset, Positions, RankedPassages, load_development_set, ranking_scores
from precise_rag.index import DenseIndex, WordSentenceIndex
from precise_rag.protocols import Encoder
from precise_rag.sentences import split_sentences
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
    parser = parse_arguments(__spec__.name, __doc__, "squad,hotpotqa,fairytaleqa")
    add_encoder(parser)
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
    save("recursive", made(__spec__.name, args), render(results))


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
    corpus = Positions(dataset.documents)
    passages = RankedPassages(corpus)
    relevant = {question.id: passages.ids(question.evidence) for question in dataset.questions}
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
            if name == "recursive":
                results["filter"] = filter_speeds(by_word, dataset)
        found, per_second = search_all(dataset, vectors, index.search)
        ranked = {id: passages.ids(pieces) for id, pieces in found.items()}
        scores = ranking_scores(relevant, ranked)
        results[name] = {measure: round(float(scores[measure].mean()), 3) for measure in MEASURES}
        results[name] |= {"compared %": round(100 * share, 2), "questions/s": round(per_second, 1)}
        print(dataset.name, len(plain), name, results[name], flush=True)
    return results


def filter_speeds(index: WordSentenceIndex, dataset: Dataset, n_questions: int = 20) -> dict:
    """Questions a second of the word filter alone: ours in arrays, and the paper's in sets and a loop."""
    columns = index._rows.parts[0].segment.collection.columns
    ends = np.cumsum(columns["pieces.lengths"])
    rows = [set(part.tolist()) for part in np.split(columns["pieces.values"], ends[:-1])]
    questions = [question.text for question in dataset.questions[:n_questions]]
    started = time.perf_counter()
    arrays = [index.candidate_rows(question).tolist() for question in questions]
    between = time.perf_counter()
    loops = []
    for question in questions:
        asked = set(index.scheme._tokens([question])[0].tolist())
        loops.append([i for i, row in enumerate(rows) if row & asked])
    seconds = between - started, time.perf_counter() - between
    assert arrays == loops
    return {"arrays/s": round(len(questions) / seconds[0]), "sets/s": round(len(questions) / seconds[1])}


def search_all(
    dataset: Dataset, vectors: np.ndarray, search: Callable[..., Sequence[Candidate]]
) -> tuple[dict, float]:
    """Candidates of each question, and questions a second without encoding."""
    search(dataset.questions[0].text, 30, vector=vectors[0])
    started = time.perf_counter()
    found = {
        question.id: search(question.text, 30, vector=vector)
        for question, vector in zip(dataset.questions, vectors, strict=True)
    }
    return found, len(found) / (time.perf_counter() - started)


def render(results: dict) -> str:
    rows = [
        {"set and method": f"{name}, {method}"}
        | {measure: f"{scores[measure]:.2f}" for measure in MEASURES}
        | {"compared (%)": scores["compared %"], "questions/s": round(scores["questions/s"])}
        for name, methods in results.items()
        for method, scores in methods.items()
        if isinstance(scores, dict) and method != "filter"
    ]
    for name, values in PAPER.items():
        cells = {measure: f"{value:.2f}" for measure, value in zip(MEASURES, values, strict=True)}
        rows.append({"set and method": f"paper: {name}", **cells, "questions/s": PAPER_SPEED.get(name, "")})
    sizes = ", ".join(f"{name} {methods['sentences']:,}" for name, methods in results.items())
    filters = "; ".join(
        f"{name} {methods['filter']['arrays/s']:,} and {methods['filter']['sets/s']:,} questions a second"
        for name, methods in results.items()
    )
    return "\n\n".join(
        [
            "# Recursive retrieval: words, then sentences",
            about(__doc__),
            table(rows),
            f"Sentences: {sizes}. Compared: the share of them that passes the word filter and is compared "
            "by meaning. Questions a second are without encoding the question.",
            "The word filter alone, in arrays and in sets and a loop, with the same candidates: " + filters,
        ]
    )


if __name__ == "__main__":
    main()
