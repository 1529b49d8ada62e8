"""Recall of evidence by meaning alone: encoders against each other, question by question.

    python -m benchmarks.retrieval.encoders ENCODER… --data DIR [--sets dev/squad,train/friendsqa]

The first encoder is the one that the others are compared with. Sentences are scored in their context
(`SentenceContextIndex`). A set "train/NAME" is measured on the documents that no training reads
(`calibrates`). Of large sets --characters are read, so that many sets fit into minutes.

The last table is about texts that say the same: two questions of SelQA, one a paraphrase of the other, should
be more alike than two others about the same article.
"""

from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.sent import recalls
from benchmarks.tables import cell, table
from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.evaluation import BUDGETS, Dataset, Evidence, compare_paired
from precise_rag.index import SentenceContextIndex
from precise_rag.protocols import Encoder
from training.candidate_lists import calibrates, read_set

SETS = (
    "dev/squad,dev/covidqa,dev/fairytaleqa,dev/qmsum,dev/cuad,dev/hotpotqa,dev/nq,dev/rgb,dev/xquad/en,"
    "train/friendsqa,train/faq,train/medquad,train/squadshifts,train/tatqa,train/pira,train/selqa"
)
TOP_K = 80
"""Sentences of a search: more than 1,600 tokens."""


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, SETS, sample=200)
    parser.add_argument("encoders", nargs="+", metavar="ENCODER", help="any that the library loads")
    record.add_characters(parser, 400_000)
    args = parser.parse_args()
    vectors = args.vectors or args.work / "vectors.sqlite"
    encoders = {Path(name).name: CachedEncoder(load_encoder(name), vectors) for name in args.encoders}
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in args.sets.split(","):
        dataset = measured(name, args)
        found[name] = {
            label: recalls(dataset, SentenceContextIndex.build(dataset.documents, encoder).search, TOP_K)
            for label, encoder in encoders.items()
        }
        print(
            name, {label: values.mean(axis=0).round(1) for label, values in found[name].items()}, flush=True
        )
    asked = read_set("train/selqa", args.data)
    alike = {label: 100 * paraphrases(asked, encoder) for label, encoder in encoders.items()}
    title = "# Recall of evidence (%) by meaning alone, with paired 95 % intervals"
    markdown = f"{title}\n\n{table(rows_of(found, list(encoders)))}\n\n{table(alike_rows(alike))}"
    data = {
        "recall": {
            name: {label: (values.mean(axis=0) / 100).round(4).tolist() for label, values in of_set.items()}
            for name, of_set in found.items()
        },
        "paraphrases": {label: float(values.mean()) / 100 for label, values in alike.items()},
    }
    record.save("retrieval", "encoders", record.made(__spec__.name, args), markdown, data)


def measured(name: str, args: Namespace) -> Dataset:
    """The documents of a set to measure on, and questions about them.

    Those of questions drawn with the seed come first, then others, until there are enough characters.
    """
    dataset = read_set(name, args.data)
    if name.startswith("train/"):
        dataset = dataset.restrict([d.id for d in dataset.documents if calibrates(d.id)])
    random = np.random.default_rng(args.seed)
    asked = [dataset.questions[row] for row in random.permutation(len(dataset.questions))]
    others = [dataset.documents[row].id for row in random.permutation(len(dataset.documents))]
    sizes = {document.id: len(document.text) for document in dataset.documents}
    order = dict.fromkeys([*(e.doc_id for q in asked for e in q.evidence), *others])
    before = np.cumsum([0, *(sizes[one] for one in order)])[:-1]
    chosen = [one for one, place in zip(order, before, strict=True) if place < args.characters]
    return dataset.restrict(chosen).sample(args.sample, args.seed)


def paraphrases(dataset: Dataset, encoder: Encoder) -> np.ndarray:
    """(pairs,) share of the other questions about an article that are less alike than a paraphrase."""
    by_document: dict[str, dict[tuple[Evidence, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for question in dataset.questions:
        if calibrates(question.group):
            by_document[question.group][question.evidence].append(question.text)
    shares = []
    for asked in by_document.values():
        texts = [text for several in asked.values() for text in several]
        vectors = encoder.encode_queries(texts)
        of = np.repeat(np.arange(len(asked)), [len(several) for several in asked.values()])
        cosines = vectors @ vectors.T
        for row, other in combinations(range(len(texts)), 2):
            if of[row] == of[other] and (of != of[row]).any():
                shares.append((cosines[row, of != of[row]] < cosines[row, other]).mean())
    return np.array(shares)


def alike_rows(alike: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """One row an encoder, with what it adds to the first."""
    first = next(iter(alike.values()))
    return [
        {
            f"encoder ({len(first)} paraphrases)": label,
            "more alike than others (%)": float(values.mean()),
            "minus the first": compare_paired(values, first).difference,
        }
        for label, values in alike.items()
    ]


def rows_of(found: dict[str, dict[str, np.ndarray]], labels: Sequence[str]) -> list[dict[str, Any]]:
    """One row a set and a last one for their mean: recall with the first encoder, and what others add."""
    head = f"{labels[0]}, {' / '.join(map(str, BUDGETS))} tokens"
    rows = []
    for name, of_set in found.items():
        first = of_set[labels[0]]
        row = {"set (questions)": f"{name} ({len(first)})", head: _slashes(first.mean(axis=0), ".1f")}
        for label in labels[1:]:
            both = zip(of_set[label].T, first.T, strict=True)
            gains = [compare_paired(ours, theirs).difference for ours, theirs in both]
            row[f"{label}, minus the first"] = " / ".join(map(cell, gains))
        rows.append(row)
    means = [np.mean([of_set[label].mean(axis=0) for of_set in found.values()], axis=0) for label in labels]
    last = {"set (questions)": "mean of the sets", head: _slashes(means[0], ".1f")}
    more = {
        f"{o}, minus the first": _slashes(m - means[0], "+.1f") for o, m in zip(labels, means, strict=True)
    }
    return [*rows, last | dict(list(more.items())[1:])]


def _slashes(values: Iterable[float], form: str) -> str:
    return " / ".join(format(value, form) for value in values)


if __name__ == "__main__":
    main()
