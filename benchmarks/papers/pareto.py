"""ParetoRAG, Tables 1 (tokens), 2 and 3, and Figure 6: sentences in context against whole passages.

    python -m benchmarks.papers.pareto --data DIR [--sets hotpotqa,nq]

What differs from the paper: all-MiniLM-L6-v2 for DPR, ANCE and Contriever; the collections are the
development sets, not all of Wikipedia; contexts are means of sentence vectors where the paper encodes
them again (both are given for HotpotQA). Figure 6 takes Recall@30 as the share of questions with
evidence among the best 30 sentences.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Evidence, load_development_set
from benchmarks.harness.evidence import Positions, useful_ratio
from benchmarks.harness.run import Measured, Pipeline, measure, search
from benchmarks.harness.tables import about, cached_encoder, save, sets_parser, table
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex
from precise_rag.sentences import split_sentences

ALPHAS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
BUDGET = 450
ENCODED_ON = "hotpotqa"
"""Where contexts are encoded again, as the paper does."""

PASSAGES: dict[str, Any] = {"kind": DenseIndex, "chunks": "paragraphs"}
CONTEXT: dict[str, Any] = {"kind": SentenceContextIndex}
USEFUL: dict[str, Mapping[str, Any]] = {
    "naive": PASSAGES,
    "sentences alone": CONTEXT | {"alpha": 1.0},
    "ParetoRAG, mean, 0.8": CONTEXT | {"alpha": 0.8},
    "ParetoRAG, mean, 0.6": CONTEXT | {"alpha": 0.6},
    "HybridIndex": {"kind": HybridIndex},
    "HybridIndex, sentences": {"kind": HybridIndex, "returns": "sentence"},
    "ParetoRAG, encode, 0.8": CONTEXT | {"alpha": 0.8, "context": "encode", "similarity": "dot"},
}
"""Searches of Table 2."""


def pipelines(name: str) -> dict[str, Pipeline]:
    """The searches of all tables."""
    found = {
        search_name: search(top_k=60, **options)
        for search_name, options in USEFUL.items()
        if "encode" not in search_name or name == ENCODED_ON
    }
    found["10 passages"] = search(top_k=10, **PASSAGES)
    found["10 sentences"] = search(top_k=10, alpha=0.8, **CONTEXT)
    found["passages"] = search(top_k=30, **PASSAGES)
    return found | {str(alpha): search(top_k=30, alpha=alpha, **CONTEXT) for alpha in ALPHAS}


def main() -> None:
    args = sets_parser(__spec__.name, __doc__, "hotpotqa,nq,squad", sample=300).parse_args()
    encoder, useful, sizes, curves = cached_encoder(args), {}, [], []
    for name in args.sets.split(","):
        dataset = load_development_set(name, args.data).with_evidence().sample(args.sample, args.seed)
        found = measure(pipelines(name), dataset, encoder, (BUDGET,))
        useful[name] = useful_sentences(found)
        sizes.append(units(found))
        shares = {n: 100 * (found.values[n]["recall"] > 0).mean() for n in ("passages", *map(str, ALPHAS))}
        curves.append({"set": name} | {n: float(share) for n, share in shares.items()})
    save(
        "pareto",
        __spec__.name,
        args,
        "ParetoRAG: sentences in context",
        about(__doc__),
        *rendered(useful, sizes, curves),
    )


def useful_sentences(found: Measured) -> dict[str, tuple[float, float]]:
    """Useful sentences among those sent in 450 tokens, and evidence sent, in percent, by search."""
    shown = {
        name: (100 * values["useful@450"].mean(), 100 * values[f"recall@{BUDGET}"].mean())
        for name, values in found.values.items()
        if name in USEFUL
    }
    documents, questions = found.dataset.documents, found.dataset.questions
    corpus = Positions(documents)
    sentences = [Evidence(d.id, *span) for d in documents for span in split_sentences(d.text)]
    places, ratios = corpus.locate(sentences), []
    for question in questions:
        wanted = corpus.locate(question.evidence)
        holding = ((places[:, :1] < wanted[:, 1]) & (wanted[:, 0] < places[:, 1:])).any(axis=1)
        first = [sentences[row] for row in np.flatnonzero(holding)]
        fill = [Evidence(d.id, 0, len(d.text)) for d in documents if d.id != question.group]
        ratios.append(useful_ratio(corpus, [*first, *fill], question.evidence, places, BUDGET))
    return {**shown, "evidence first": (100 * float(np.mean(ratios)), 100.0)}


def units(found: Measured) -> dict[str, Any]:
    """Numbers of units, and the tokens of the best ones."""
    texts = [document.text for document in found.dataset.documents]
    passages = sum(bool(part.strip()) for text in texts for part in text.split("\n\n"))
    sentences = sum(len(split_sentences(text)) for text in texts)
    tokens = {
        f"tokens of {what}": round(float(found.values[name]["tokens"].mean()))
        for name, what in (("10 passages",) * 2, ("10 sentences",) * 2, ("0.8", "30 sentences"))
    }
    counts = {"set": found.dataset.name, "passages": passages, "sentences": sentences}
    return counts | tokens | {"sentences/passages": sentences / passages}


def rendered(useful: dict[str, Any], sizes: list[dict[str, Any]], curves: list[dict[str, Any]]) -> list[str]:
    """The tables."""
    methods = dict.fromkeys(method for found in useful.values() for method in found)
    shares: list[dict[str, Any]] = [
        {"search": method}
        | {
            name: "{:.1f} / {:.1f}".format(*found[method])
            for name, found in useful.items()
            if method in found
        }
        for method in methods
    ]
    first = next(iter(useful))
    shares.append({"search": "paper, naive, three retrievers", first: "20.8 to 21.9"})
    shares.append({"search": "paper, ParetoRAG, three retrievers", first: "26.1 to 28.8"})
    return [
        "## Table 2: share of the sentences sent that are evidence / share of the evidence that is sent, "
        "at 450 tokens (%)",
        table(shares),
        '"Evidence first" sends all that is evidence and fills up with other documents: no search can do '
        "better in the first number: a question has 2.4 useful sentences, and 450 tokens hold more than a "
        "dozen. The paper lies above that: it must count something else, or send less. Evidence is whole "
        "sentences in HotpotQA only; elsewhere a few words mark their sentence.",
        "## Tables 1 and 3: tokens sent and units",
        table(sizes),
        "The paper sends 26 to 40 % of the tokens of naive passages; it has 2.4 (HotpotQA) to 3.5 (NQ) "
        "sentences a passage.",
        "## Figure 6: evidence among the best 30, by the weight alpha of the sentence itself (%)",
        table(curves),
        "The paper finds its best near 0.8, on all of Wikipedia.",
    ]


if __name__ == "__main__":
    main()
