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
from benchmarks.evidence.measure import covered
from benchmarks.questions import unseen
from precise_rag import HybridIndex, PreciseRAG
from precise_rag.evaluation import Dataset, compare_paired
from precise_rag.evaluation.adapting import Adapted, adapt
from precise_rag.evaluation.report.tables import format_markdown
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


def contracts(options: Namespace) -> list[dict[str, Any]]:
    """Return the rows of the whole path over contracts, as it is and adapted on others."""
    encoder = record.cached_encoder(options)
    train = training_contracts(options)
    found = adapt(HybridIndex.build(train.documents, encoder), train.questions)
    print(found.says, flush=True)
    dataset = unseen(read_set("dev/cuad", options.data), "cuad")
    asked = dataset.sample(options.sample, seed=options.seed).questions
    index = HybridIndex.build(dataset.documents, encoder)
    rows: list[dict[str, Any]] = []
    first: dict[str, np.ndarray] = {}
    tried = [("as it is", None), ("adapted on others", found.adaptation)]
    for (label, adaptation), (sent, selector) in product(tried, SELECTORS.items()):
        index.adaptation = adaptation
        rag = PreciseRAG(index, selector=selector)
        kept = [rag.retrieve(question.text).kept for question in asked]
        shares = np.array(
            [
                covered(some, question) / sum(e.end - e.start for e in question.evidence)
                for some, question in zip(kept, asked, strict=True)
            ]
        )
        gain = compare_paired(
            shares, first.setdefault(sent, shares), groups=[question.group for question in asked]
        ).difference
        tokens = float(np.mean([sum(c.n_tokens or 0 for c in some) for some in kept]))
        row = {
            "set": "cuad",
            "questions": len(asked),
            "reranker": f"{label}, {sent}",
            "evidence %": 100 * shares.mean(),
        }
        row |= {"tokens": tokens, "gain": 100 * gain.mean, "low": 100 * gain.low, "high": 100 * gain.high}
        rows.append({**row, "says": found.says})
        print(rows[-1], flush=True)
    return rows


def own(name: str, options: Namespace) -> list[dict[str, Any]]:
    """Return the rows of a set whose own questions adapt: what is said of those held out."""
    dataset = unseen(read_set(f"dev/{name}", options.data), name)
    asked = dataset.sample(options.sample, seed=options.seed).questions
    found: Adapted = adapt(HybridIndex.build(dataset.documents, record.cached_encoder(options)), asked)
    print(name, found.says, flush=True)
    common = {"set": name, "questions": found.n_questions}
    gain = {
        "gain": 100 * found.evidence.mean,
        "low": 100 * found.evidence.low,
        "high": 100 * found.evidence.high,
    }
    none = {"gain": 0.0, "low": 0.0, "high": 0.0}
    label = "own questions, held out" + ("" if found.adaptation else " (kept as it is)")
    return [
        {
            **common,
            "reranker": "as it is",
            "evidence %": 100 * found.before,
            "tokens": "",
            **none,
            "says": "",
        },
        {
            **common,
            "reranker": label,
            "evidence %": 100 * found.after,
            "tokens": "",
            **gain,
            "says": found.says,
        },
    ]


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, ",".join(SETS), sample=60)
    parser.add_argument("--questions", type=int, default=60, help="of training contracts (%(default)s)")
    options = parser.parse_args()
    rows = contracts(options)
    for name in filter(None, options.sets.split(",")):
        rows += own(name, options)
    columns = [name for name in rows[0] if name != "says"]
    body = [[f"{row[c]:.1f}" if isinstance(row[c], float) else str(row[c]) for c in columns] for row in rows]
    said = "\n".join(dict.fromkeys(f"- {row['set']}: {row['says']}" for row in rows if row["says"]))
    text = f"# Adapting the reranker\n\n{format_markdown(columns, body)}\n\nWhat `adapt` says:\n\n{said}"
    made = record.made(__spec__.name, options)
    record.save("reranking", "adapting", made, text, {"rows": rows})


if __name__ == "__main__":
    main()
