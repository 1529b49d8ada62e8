"""Fit the probabilities of the cascade to a trained cross-encoder, and save it.

    python -m training.reranker_cascade.calibrate OUT --data DIR [--network FOLDER]

OUT is the folder for the model, FOLDER that of its weights (default: the package's). The questions are
those about documents kept out of training, searched in collections of such documents; each set has the same
weight. The proportions of the judgements are given below; they were chosen on the development sets and on
questions about documentation, as the sets here say nothing about questions in another language than the
texts. Level and spread are fitted, but the spread is made smaller: on documentation, which is not among these
sets, the network is less sure than it should be, and what it finds improbable is needed more often.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset, load_development_set
from precise_rag.checkpoints.saved import load_checkpoint, packaged_model, save_checkpoint
from precise_rag.encoders import load_encoder
from precise_rag.index import HybridIndex
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.packaged import packaged_reranker
from training.candidate_lists import as_candidate_list, in_their_texts
from training.multilingual.lists import is_kept
from training.reranker.logistic_regression import fit_logistic_regression

SETS = ("multilingual", "nq", "squadshifts", "fairytaleqa", "faq", "afriqa", "medquad")
QUESTIONS, CHARACTERS, N_CANDIDATES = 16, 350_000, 100
"""Questions of a set, characters of its collection, and candidates of a question."""
PROPORTIONS = {
    "blend": {"packaged": 0.7, "reads": 0.4},
    "blend_dense": {"packaged": 0.5, "reads": 0.3, "dense": 2.0},
}
"""Of the judgements, where the search's cosine is unknown, and where it is known."""

SPREAD = 0.7
"""Share of the fitted spread of the log-odds."""

Lists = list[tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]]
"""Of each question: the columns and the truth of what was read, log-odds and truth of the rest."""


def collection(name: str, data: str | None, random: np.random.Generator) -> Dataset:
    """Draw questions about documents kept out of training, with such documents around theirs."""
    dataset = load_development_set(name, data, "train").with_evidence()
    asked = [q for q in dataset.questions if is_kept(q.group)]
    drawn = [asked[row] for row in random.permutation(len(asked))[:QUESTIONS]]
    needed = {one.doc_id for question in drawn for one in question.evidence}
    documents = [d for d in dataset.documents if d.id in needed]
    for row in random.permutation(len(dataset.documents)):
        one = dataset.documents[row]
        if sum(len(d.text) for d in documents) > CHARACTERS:
            break
        if one.id not in needed and is_kept(one.id):
            documents.append(one)
    return replace(dataset, documents=tuple(documents), questions=tuple(drawn))


def judged(cascade: CascadeReranker, dataset: Dataset) -> Iterator[Any]:
    """Yield what the cascade makes of each question; see `Lists`."""
    index = HybridIndex.build(list(dataset.documents), load_encoder())
    texts = {document.id: document.text for document in dataset.documents}
    for question in dataset.questions:
        found = in_their_texts(index.search(question.text, N_CANDIDATES, returns="sentence"), texts)
        truth = as_candidate_list(question, found).relevant
        rows, columns, packaged = cascade.shortlist(question.text, found)
        rest = np.setdiff1d(np.arange(len(found)), rows)
        yield columns, truth[rows], packaged[rest], truth[rest]


def fitted(sets: Mapping[str, Lists]) -> dict[str, dict[str, float]]:
    """Return the weights of the three regressions."""
    every = [(one, 1.0 / len(lists)) for lists in sets.values() for one in lists]
    weight, truth = [w for _, w in every], [one[1] for one, _ in every]
    weights = {}
    for name, shares in PROPORTIONS.items():
        odds = [{"odds": sum(share * one[0][key] for key, share in shares.items())} for one, _ in every]
        spread = SPREAD * fit_logistic_regression(odds, truth, weight)["odds"]
        weights[name] = {key: spread * share for key, share in shares.items()}
        weights[name]["offset"] = offset_of([spread * one["odds"] for one in odds], truth, weight)
    rest = [{"packaged": one[2]} for one, _ in every]
    weights["unread"] = fit_logistic_regression(rest, [one[3] for one, _ in every], weight)
    return weights


def offset_of(odds: list[np.ndarray], truth: list[np.ndarray], weight: list[float]) -> float:
    """Return what is added to log-odds so that as many are expected to be relevant as are; by bisection."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        gaps = (np.mean(1 / (1 + np.exp(-(o + middle))) - t) for o, t in zip(odds, truth, strict=True))
        if sum(w * gap for w, gap in zip(weight, gaps, strict=True)) < 0:
            low = middle
        else:
            high = middle
    return low


def main() -> None:
    parser = ArgumentParser(prog="python -m training.reranker_cascade.calibrate", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument("--data", metavar="DIR", help="folder of the sets (default: PRECISE_DATA)")
    parser.add_argument("--network", type=Path, default=packaged_model("reranker-cascade"), metavar="FOLDER")
    options = parser.parse_args()
    cascade = CascadeReranker(options.network, least=0)
    random = np.random.default_rng(0)
    sets = {name: list(judged(cascade, collection(name, options.data, random))) for name in SETS}
    weights = fitted(sets)
    packaged = packaged_reranker().weights_sha256
    config = {"kind": "cascade", "packaged_sha256": packaged, **weights}
    save_checkpoint(options.out, config, load_checkpoint(options.network)[1])
    print(f"{weights}; saved in {options.out}")


if __name__ == "__main__":
    main()
