"""Recall of evidence at token budgets: our indexes against plain search over plain chunks.

    python -m benchmarks.retrieval.recall --data DIR [--systems plain,hybrid,units] [--sets squad] [--plot]

Plain search is dense, BM25 (bm25s) and hybrid (0.5/0.5) over LangChain's recursive splitter at 100 and
200 tokens. The last columns compare each of our hybrids with the plain search that is best on that
set at that budget, question by question; taking the best of six in hindsight favours the plain side.
`--sets checks` takes questions that no setting was chosen on (benchmarks.retrieval.checks).
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.retrieval.checks import CHECKS, load_check_set
from benchmarks.retrieval.panels import panels
from precise_rag.encoders import load_encoder
from precise_rag.evaluation import (
    BUDGETS,
    Dataset,
    Interval,
    Positions,
    bootstrap_interval,
    compare_paired,
    load_development_set,
    score_evidence,
)
from precise_rag.evaluation.splitters import load_splitter
from precise_rag.evaluation.units import UnitIndex
from precise_rag.index import BM25Index, DenseIndex, HybridIndex, SentenceContextIndex
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate

SETS = "hotpotqa,nq,squad,fairytaleqa,covidqa,cuad,rgb,xquad/de,xquad/zh,xquad/ar,qmsum"
SYSTEMS = "plain,naive,words,alpha,encode,hybrid"
ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
ENCODED = ("squad", "covidqa", "fairytaleqa", "hotpotqa", "nq")
"""Where contexts are encoded again too; it takes minutes a set."""
SHOWN = (
    "whole passages, dense",
    "plain dense, 200 tokens",
    "plain hybrid, 100 tokens",
    "plain hybrid, 200 tokens",
    "context mean, alpha 1.0",
    "context mean, alpha 0.6",
    "sentences in context, BM25, two scales, alpha 1/3",
    "HybridIndex",
)
"""What the plot over tokens holds: all would be too much."""
OURS = "HybridIndex"
Search = Callable[[str, int], Sequence[Candidate]]
Recalls = dict[str, np.ndarray]


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, SETS, sample=200)
    parser.add_argument("--systems", default=SYSTEMS, help="groups of systems (%(default)s)")
    parser.add_argument("--plot", action="store_true", help="draw recall over alpha and over tokens")
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    sets = ",".join(CHECKS) if args.sets == "checks" else args.sets
    results: dict[str, Recalls] = {}
    for name in sets.split(","):
        load = load_check_set if name in CHECKS else load_development_set
        dataset = load(name, args.data).with_evidence().sample(args.sample, args.seed)
        corpus = Positions(dataset.documents)
        results[name] = {
            system: recalls(corpus, dataset, search)
            for group in args.systems.split(",")
            for system, search in GROUPS[group](dataset, encoder)
        }
        print(table(name, results[name]), flush=True)
        path = save(args, results)
        if args.plot:
            draw(path, results)


def recalls(corpus: Positions, dataset: Dataset, search: Search) -> np.ndarray:
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


def naive(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    yield "whole passages, dense", DenseIndex.build(dataset.documents, encoder, chunks="paragraphs").search


def words(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    yield "sentences, BM25", BM25Index.build(dataset.documents, chunks="sentences").search
    for scales, passages, surroundings, weight in (
        ("one scale, alpha 0.6", "paragraphs", None, 0.6),
        ("two scales, alpha 1/3", "200 tokens", "400 tokens", 1 / 3),
    ):
        index = HybridIndex.build(
            dataset.documents,
            encoder,
            passages=passages,
            surroundings=surroundings,
            alpha=weight,
            dense_weight=0,
        )
        yield f"sentences in context, BM25, {scales}", _search(index, returns="sentence")


def hybrid(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    yield "HybridIndex", HybridIndex.build(dataset.documents, encoder).search
    yield "HybridIndex, segments", HybridIndex.build(dataset.documents, encoder, passages="segments").search


def int8(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    yield "HybridIndex", HybridIndex.build(dataset.documents, encoder).search
    rounded = load_encoder(f"int8:{encoder.name}")
    yield "HybridIndex, encoder in int8", HybridIndex.build(dataset.documents, rounded).search


def alpha(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    yield from _alphas("mean", SentenceContextIndex.build(dataset.documents, encoder))


def encode(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    if dataset.name not in ENCODED:
        return
    index = SentenceContextIndex.build(dataset.documents, encoder, context="encode")
    yield from _alphas("encode", index)
    paper = SentenceContextIndex.build(
        dataset.documents, encoder, alpha=0.8, context="encode", similarity="dot"
    )
    yield "context encode, dot product, alpha 0.8 (the paper's)", paper.search


def units(dataset: Dataset, encoder: Encoder) -> Iterator[tuple[str, Search]]:
    index = HybridIndex.build(dataset.documents, encoder)
    for returned in ("sentence", "passage"):
        yield f"HybridIndex, returns {returned}", _search(index, returns=returned)


GROUPS = {
    "plain": plain,
    "naive": naive,
    "words": words,
    "alpha": alpha,
    "encode": encode,
    "units": units,
    "hybrid": hybrid,
    "int8": int8,
}


def _alphas(context: str, index: SentenceContextIndex) -> Iterator[tuple[str, Search]]:
    for weight in ALPHAS:
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


def summary(results: dict[str, Recalls]) -> str:
    """HybridIndex on each set, and its difference from the plain search that is best there."""
    lines = ["\n| set (questions) | `HybridIndex` | minus the best plain search |", "|---|---|---|"]
    for name, found in results.items():
        peers = [values for system, values in found.items() if system.startswith("plain")]
        if peers and OURS in found:
            means = " / ".join(f"{value:.1f}" for value in 100 * found[OURS].mean(axis=0))
            gains = [
                _compared(found[OURS][:, j], [peer[:, j] for peer in peers]) for j in range(len(BUDGETS))
            ]
            cells = " / ".join(
                f"**{g.mean:+.1f}**" if g.low * g.high > 0 else f"{g.mean:+.1f}" for g in gains
            )
            lines.append(f"| {name} ({len(found[OURS])}) | {means} | {cells} |")
    return "\n".join([*lines, "\nBold: the interval excludes 0.\n"]) if len(lines) > 2 else ""


def _compared(ours: np.ndarray, peers: Sequence[np.ndarray]) -> Interval:
    best = max(peers, key=lambda values: values.mean())
    return compare_paired(100 * ours, 100 * best).difference


def _gain(ours: np.ndarray, peers: Sequence[np.ndarray]) -> str:
    gain = _compared(ours, peers)
    return f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"


def save(args: Any, results: dict[str, Recalls]) -> Path:
    """Write the tables and the means; the name says which groups were measured if not all were."""
    systems = "" if args.systems == SYSTEMS else f"-{args.systems.replace(',', '-')}"
    checks = "-checks" if set(args.sets.split(",")) <= {"checks", *CHECKS} else ""
    text = "# Recall of evidence (%) at token budgets, with 95 % bootstrap intervals\n" + summary(results)
    means = {
        name: {system: values.mean(axis=0).round(4).tolist() for system, values in found.items()}
        for name, found in results.items()
    }
    made = record.made(__spec__.name, args)
    markdown = text + "\n".join(table(name, found) for name, found in results.items())
    return record.save("retrieval", f"recall{checks}{systems}", made, markdown, {"recall": means})


def draw(file: Path, results: dict[str, Recalls]) -> None:
    """<file>.svg: recall over tokens; <file>-alpha.svg: recall at 400 tokens over alpha; a panel a set."""
    over_tokens = {
        name: {system: list(zip(BUDGETS, 100 * found[system].mean(axis=0), strict=True)) for system in SHOWN}
        for name, found in results.items()
        if found.keys() >= set(SHOWN)
    }
    at_400 = BUDGETS.index(400)
    over_alpha = {
        name: {
            context: [
                (alpha, 100 * found[f"context {context}, alpha {alpha}"][:, at_400].mean())
                for alpha in ALPHAS
            ]
            for context in ("mean", "encode")
            if f"context {context}, alpha 1.0" in found
        }
        for name, found in results.items()
    }
    if over_tokens:
        Path(f"{file}.svg").write_text(
            panels(over_tokens, x_label="tokens sent", y_label="recall of evidence (%)", logarithmic=True)
        )
    if any(over_alpha.values()):
        Path(f"{file}-alpha.svg").write_text(
            panels(over_alpha, x_label="alpha (1: the sentence alone)", y_label="recall at 400 tokens (%)")
        )


if __name__ == "__main__":
    main()
