"""Recall of evidence at token budgets: our indexes against plain search over plain chunks.

    python -m benchmarks.retrieval.recall --data DIR [--systems plain,hybrid,alpha,encode,units] [--plot]

Plain search is dense, BM25 (bm25s) and hybrid (0.5/0.5) over LangChain's recursive splitter at 100 and
200 tokens. The last columns compare each of our hybrids with the plain search that is best on that
set at that budget, question by question; taking the best of six in hindsight favours the plain side.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.papers.record import RESULTS, cached_encoder, parse_arguments
from precise_rag.evaluation import (
    BUDGETS,
    Corpus,
    Dataset,
    bootstrap_interval,
    compare_paired,
    load_development_set,
    score_evidence,
)
from precise_rag.evaluation.evaluate import circumstances
from precise_rag.evaluation.splitters import load_splitter
from precise_rag.evaluation.units import UnitIndex
from precise_rag.index import HybridIndex, SentenceContextIndex
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate

SETS = "squad,covidqa,fairytaleqa,hotpotqa,nq,cuad,qmsum,rgb"
Search = Callable[[str, int], Sequence[Candidate]]


def main() -> None:
    parser = parse_arguments(__doc__, SETS, sample=400)
    parser.add_argument("--systems", default="plain,hybrid", help="groups of systems (%(default)s)")
    parser.add_argument("--plot", action="store_true", help="draw alpha against recall (needs matplotlib)")
    args = parser.parse_args()
    encoder = cached_encoder(args)
    results = {}
    for name in args.sets.split(","):
        dataset = load_development_set(name, args.data).with_evidence().sample(args.sample, args.seed)
        corpus = Corpus(dataset.documents)
        results[name] = {
            system: recalls(corpus, dataset, search)
            for group in args.systems.split(",")
            for system, search in GROUPS[group](dataset, encoder)
        }
        print(table(name, results[name]), flush=True)
    save(args, results)
    if args.plot:
        plot({name: found for name, found in results.items() if any("alpha" in s for s in found)})


def recalls(corpus: Corpus, dataset: Dataset, search: Search) -> np.ndarray:
    """(questions, budgets) recall of each question's evidence."""
    return np.array(
        [score_evidence(corpus, search(q.text, 100), q.evidence).recall for q in dataset.questions]
    )


def plain(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    for size in (100, 200):
        split = load_splitter("langchain-recursive", encoder, chunk_size=size)
        units = [unit for document in dataset.documents for unit in split(document)]
        for kind in ("dense", "bm25", "hybrid"):
            yield f"plain {kind}, {size} tokens", UnitIndex(dataset.documents, units, encoder, kind).search


def hybrid(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    yield "HybridIndex", HybridIndex.build(dataset.documents, encoder).search
    yield "HybridIndex, segments", HybridIndex.build(dataset.documents, encoder, passages="segments").search


def alpha(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    yield from _alphas("mean", SentenceContextIndex.build(dataset.documents, encoder))


def encode(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    index = SentenceContextIndex.build(dataset.documents, encoder, context="encode")
    yield from _alphas("encode", index)
    paper = SentenceContextIndex.build(
        dataset.documents, encoder, alpha=0.8, context="encode", similarity="dot"
    )
    yield "context encode, dot product, alpha 0.8 (the paper's)", paper.search


def units(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    index = HybridIndex.build(dataset.documents, encoder)
    for returned in ("sentence", "mixed", "passage"):
        yield f"HybridIndex, returns {returned}", _search(index, returns=returned)


GROUPS = {"plain": plain, "hybrid": hybrid, "alpha": alpha, "encode": encode, "units": units}


def _alphas(context: str, index: SentenceContextIndex) -> Iterator[tuple[str, Search]]:
    for weight in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        yield f"context {context}, alpha {weight}", _search(index, alpha=weight)


def _search(index: Any, **options: Any) -> Search:
    return lambda query, top_k: index.search(query, top_k, **options)


def table(name: str, found: dict[str, np.ndarray]) -> str:
    """Means with 95 % intervals, and the hybrids' difference from the best plain search."""
    n_questions = len(next(iter(found.values())))
    lines = [f"\n## {name} ({n_questions} questions)\n", "| system | " + " | ".join(map(str, BUDGETS)) + " |"]
    lines.append("|---" * (len(BUDGETS) + 1) + "|")
    peers = {system: values for system, values in found.items() if system.startswith("plain")}
    for system, values in found.items():
        cells = [bootstrap_interval(100 * values[:, j]) for j in range(len(BUDGETS))]
        lines.append(f"| {system} | " + " | ".join(f"{m:.1f} [{a:.1f}, {b:.1f}]" for m, a, b in cells) + " |")
        if peers and system.startswith("HybridIndex"):
            gains = [
                _gain(values[:, j], [peer[:, j] for peer in peers.values()]) for j in range(len(BUDGETS))
            ]
            lines.append("| … minus best plain | " + " | ".join(gains) + " |")
    return "\n".join(lines)


def _gain(ours: np.ndarray, peers: Sequence[np.ndarray]) -> str:
    best = max(peers, key=lambda values: values.mean())
    gain = compare_paired(100 * ours, 100 * best).difference
    return f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"


def save(args: Any, results: dict[str, dict[str, np.ndarray]]) -> None:
    """benchmarks/results/retrieval-recall-<systems>-<date>.md and .json."""
    made = circumstances(args.seed)
    stem = RESULTS / f"retrieval-recall-{args.systems.replace(',', '-')}-{made['date']}"
    RESULTS.mkdir(exist_ok=True)
    head = (
        "# Recall of evidence (%) at token budgets, with 95 % bootstrap intervals\n\n"
        f"`python -m benchmarks.retrieval.recall --data DIR --systems {args.systems} --sets {args.sets}`, "
        f"{made['date']}: {made['machine']}, Python {made['python']}, seed {args.seed}, at most "
        f"{args.sample} questions a set; all-MiniLM-L6-v2.\n"
    )
    text = head + "\n".join(table(name, found) for name, found in results.items()) + "\n"
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    means = {
        name: {system: values.mean(axis=0).round(4).tolist() for system, values in found.items()}
        for name, found in results.items()
    }
    stem.with_suffix(".json").write_text(
        json.dumps({"made": made, "recall": means}, indent=1), encoding="utf-8"
    )


def plot(results: dict[str, dict[str, np.ndarray]]) -> None:
    """benchmarks/results/retrieval-alpha.svg: recall at 400 tokens over alpha, one line a set."""
    import matplotlib.pyplot as pyplot

    for name, found in results.items():
        points = {
            float(s.split("alpha ")[1]): v[:, 1].mean()
            for s, v in found.items()
            if s.startswith("context mean")
        }
        pyplot.plot(list(points), [100 * value for value in points.values()], marker="o", label=name)
    pyplot.xlabel("alpha (1: sentence alone)")
    pyplot.ylabel("recall of evidence at 400 tokens (%)")
    pyplot.legend()
    pyplot.savefig(RESULTS / "retrieval-alpha.svg")


if __name__ == "__main__":
    main()
