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
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks import record
from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.evaluation import BUDGETS, Dataset, Evidence, Positions, compare_paired, score_evidence
from precise_rag.evaluation.report.tables import format_markdown
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
    parser.add_argument(
        "--characters", type=int, default=400_000, help="of the documents of a set, about (%(default)s)"
    )
    args = parser.parse_args()
    vectors = args.vectors or args.work / "vectors.sqlite"
    encoders = {Path(name).name: CachedEncoder(load_encoder(name), vectors) for name in args.encoders}
    found = {}
    for name in args.sets.split(","):
        found[name] = {label: recalls(measured(name, args), encoder) for label, encoder in encoders.items()}
        print(
            name,
            {label: 100 * values.mean(axis=0).round(3) for label, values in found[name].items()},
            flush=True,
        )
    means = {
        name: {label: values.mean(axis=0).round(4).tolist() for label, values in of_set.items()}
        for name, of_set in found.items()
    }
    asked = read_set("train/selqa", args.data)
    alike = {label: paraphrases(asked, encoder) for label, encoder in encoders.items()}
    title = "# Recall of evidence (%) by meaning alone, with paired 95 % intervals\n\n"
    markdown = f"{title}{table(found, list(encoders))}\n\n{table_of_paraphrases(alike)}"
    data = {"recall": means, "paraphrases": {label: float(values.mean()) for label, values in alike.items()}}
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


def recalls(dataset: Dataset, encoder: Encoder) -> np.ndarray:
    """(questions, budgets) recall of each question's evidence."""
    index = SentenceContextIndex.build(dataset.documents, encoder)
    corpus = Positions(dataset.documents)
    return np.array(
        [score_evidence(corpus, index.search(q.text, TOP_K), q.evidence).recall for q in dataset.questions]
    )


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


def table_of_paraphrases(alike: dict[str, np.ndarray]) -> str:
    """One row an encoder, with what it adds to the first."""
    first = 100 * next(iter(alike.values()))
    rows = []
    for label, values in alike.items():
        gain = compare_paired(100 * values, first).difference
        rows.append(
            [label, f"{100 * values.mean():.1f}", f"{gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}]"]
        )
    return format_markdown(
        [f"encoder ({len(first)} paraphrases)", "more alike than others (%)", "minus the first"], rows
    )


def table(found: dict[str, dict[str, np.ndarray]], labels: Sequence[str]) -> str:
    """One row a set and a last one for their mean: recall with the first encoder, and what others add."""
    rows = []
    for name, of_set in found.items():
        first = of_set[labels[0]]
        cells = [" / ".join(f"{value:.1f}" for value in 100 * first.mean(axis=0))]
        for label in labels[1:]:
            gains = [
                compare_paired(100 * of_set[label][:, j], 100 * first[:, j]).difference
                for j in range(len(BUDGETS))
            ]
            cells.append(" / ".join(f"{g.mean:+.1f} [{g.low:+.1f}, {g.high:+.1f}]" for g in gains))
        rows.append([f"{name} ({len(first)})", *cells])
    means = {
        label: np.mean([of_set[label].mean(axis=0) for of_set in found.values()], axis=0) for label in labels
    }
    last = [" / ".join(f"{value:.1f}" for value in 100 * means[labels[0]])]
    last += [
        " / ".join(f"{value:+.1f}" for value in 100 * (means[label] - means[labels[0]]))
        for label in labels[1:]
    ]
    budgets = " / ".join(map(str, BUDGETS))
    head = [
        "set (questions)",
        f"{labels[0]}, {budgets} tokens",
        *(f"{label}, minus the first" for label in labels[1:]),
    ]
    return format_markdown(head, [*rows, ["mean of the sets", *last]])


if __name__ == "__main__":
    main()
