"""What adapting the reranker to a collection gains, on contracts and on other collections.

    python -m benchmarks.reranking.adapting --data DIR [--vectors FILE]

On contracts, `adapt` is given questions about some of the training set, and what it learned is used for
questions about others, those of the development set. Other sets are asked their own questions; what `adapt`
says of those held out is shown. "evidence": share of the marked evidence that the whole path sends, or, of
questions held out, that is in the first 500 tokens. "tokens": what is sent. "gain" of evidence: documents
redrawn in pairs.
"""

from argparse import Namespace
from itertools import product
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.questions import unseen
from benchmarks.sent import Sent, sent_by
from benchmarks.tables import percent
from precise_rag import HybridIndex, PreciseRAG
from precise_rag.evaluation import Dataset
from precise_rag.evaluation.adapting import Adapted, adapt
from precise_rag.selection import ProbabilitySelector
from training.candidate_lists import calibrates, read_set

SELECTORS = {
    "by default": ProbabilitySelector(),
    "400 tokens": ProbabilitySelector(share_of_best=0, min_score=0, max_tokens=400),
}
"""What is sent, by its name in the table."""

SETS = ("squad", "covidqa", "fairytaleqa")
_CONTRACTS, _LONGEST = 24, 40_000
"""Training contracts that are drawn, and the characters of the longest."""


def training_contracts(options: Namespace) -> Dataset:
    """Return some contracts of the training set, none of which calibrates a packaged model."""
    dataset = read_set("train/cuad", options.data)
    ids = [d.id for d in dataset.documents if not calibrates(d.id) and len(d.text) < _LONGEST]
    order = np.random.default_rng(options.seed).permutation(len(ids))[:_CONTRACTS]
    return dataset.restrict([ids[row] for row in order]).sample(options.questions, seed=options.seed)


def contracts(options: Namespace) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of the whole path over contracts, as it is and adapted on others, and what is said."""
    encoder = record.cached_encoder(options)
    train = training_contracts(options)
    found = adapt(HybridIndex.build(train.documents, encoder), train.questions)
    dataset = unseen(read_set("dev/cuad", options.data), "cuad")
    asked = dataset.sample(options.sample, seed=options.seed).questions
    index = HybridIndex.build(dataset.documents, encoder)
    rows: list[dict[str, Any]] = []
    first: dict[str, Sent] = {}
    tried = [("as it is", None), ("adapted on others", found.adaptation)]
    for (label, adaptation), (what, selector) in product(tried, SELECTORS.items()):
        index.adaptation = adaptation
        sent = sent_by(PreciseRAG(index, selector=selector), asked)
        row = {"set": "cuad", "questions": len(asked), "reranker": f"{label}, {what}"}
        rows.append(row | sent.row(first.setdefault(what, sent)))
        print(rows[-1], flush=True)
    return rows, found.says


def own(name: str, options: Namespace) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a set whose own questions adapt: what is said of those held out."""
    dataset = unseen(read_set(f"dev/{name}", options.data), name)
    asked = dataset.sample(options.sample, seed=options.seed).questions
    found: Adapted = adapt(HybridIndex.build(dataset.documents, record.cached_encoder(options)), asked)
    label = "own questions, held out" + ("" if found.adaptation else " (kept as it is)")
    rows = [
        {"set": name, "questions": found.n_questions, "reranker": reranker, "evidence %": 100 * evidence}
        | {"tokens": "", "gain": gain[0], "low": gain[1], "high": gain[2]}
        for reranker, evidence, gain in (
            ("as it is", found.before, (0.0, 0.0, 0.0)),
            (label, found.after, percent(found.evidence)),
        )
    ]
    return rows, found.says


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, ",".join(SETS), sample=60)
    parser.add_argument("--questions", type=int, default=60, help="of training contracts (%(default)s)")
    options = parser.parse_args()
    rows, says = contracts(options)
    said = [f"- cuad: {says}"]
    for name in filter(None, options.sets.split(",")):
        more, says = own(name, options)
        rows += more
        said.append(f"- {name}: {says}")
        print(said[-1], flush=True)
    also = "What `adapt` says:\n\n" + "\n".join(said)
    record.save_rows(__spec__.name, options, "reranking/adapting", "Adapting the reranker", rows, also=also)


if __name__ == "__main__":
    main()
