"""Recall of evidence at token budgets by the whole default path, by kind of text, beside what we aim at.

    python -m benchmarks.evidence.path --data DIR [--sets stories,news] [--sample 40] [--cache DIR]

The likeliest sentences of the path, cut where the budget is full; questions redrawn for the intervals. No
model that finds or orders was trained on the documents: of development sets that are halved the other half is
asked about, of training sets those that are kept out. Manuals are those whose headings ask a question, of the
documents that the packaged reranker's weak questions leave out. A collection is all documents of its sets;
"mixed" is one of small sets, with novels and textbooks that nothing is asked about. "own": asked of the
contract or meeting that is meant alone, which these questions do not name. "most": what the evidence itself
would reach, if nothing else were sent. --cache keeps what is measured.
"""

import pickle
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.questions import unseen
from precise_rag import PreciseRAG
from precise_rag.documents import read_documents
from precise_rag.evaluation import BUDGETS, Dataset, Positions, bootstrap_interval, score_evidence
from precise_rag.index import HybridIndex
from precise_rag.protocols import Encoder
from precise_rag.types import Document, best_first
from training.candidate_lists import calibrates, read_set
from training.weak_questions import collections, documents_of

MODULE = "benchmarks.evidence.path"


class Kind(NamedTuple):
    """A kind of text. aims: recall (%) within each budget. noise: characters of long documents, by source."""

    sets: tuple[str, ...]
    aims: tuple[float, ...] = ()
    own: bool = False
    noise: Mapping[str, int] = {}


MIXED = ("dev/fairytaleqa", "dev/hotpotqa", "dev/nq", "dev/rgb", "train/friendsqa", "train/tatqa")
NOISE = {"standardebooks": 1_000_000, "openstax": 500_000}
KINDS = {
    "dialogues": Kind(("train/friendsqa",), (72, 82, 88, 93)),
    "finance": Kind(("train/tatqa",), (95, 98, 99, 99.5)),
    "news": Kind(("dev/rgb",), (92, 98, 99, 99.5)),
    "two hops": Kind(("dev/hotpotqa",), (74, 86, 93, 97)),
    "stories": Kind(("dev/fairytaleqa",), (55, 74, 87, 94)),
    "manuals": Kind(("manuals",), (82, 92, 96, 98)),
    "web questions": Kind(("dev/nq", "train/nq"), (55, 70, 78, 86)),
    "help pages": Kind(("train/faq",), (60, 72, 83, 90)),
    "encyclopedia": Kind(("dev/squad",), (96, 98, 99, 99.5)),
    "mixed": Kind(MIXED, (80, 90, 95, 98), noise=NOISE),
    "contracts": Kind(("dev/cuad",), (24, 36, 46, 58)),
    "contracts (own)": Kind(("dev/cuad",), own=True),
    "research articles": Kind(("dev/covidqa",), (80, 88, 92, 95)),
    "meetings": Kind(("dev/qmsum",), (14, 23, 33, 42)),
    "meetings (own)": Kind(("dev/qmsum",), own=True),
}


def dataset_of(kind: Kind, args: Namespace) -> Dataset:
    """The documents of a kind, and questions drawn, as many of each set."""
    several = [_set(name, args.data) for name in kind.sets]
    asked = [one.sample(-(-args.sample // len(several)), args.seed).questions for one in several]
    documents = [document for one in several for document in one.documents]
    for source, characters in kind.noise.items():
        documents += noise(Path(args.data) / f"train_docs_{source}.jsonl.gz", characters)
    return replace(several[0], documents=tuple(documents), questions=tuple(q for some in asked for q in some))


def noise(path: Path, characters: int) -> Iterator[Document]:
    """Yield the first documents of a file, until they have so many characters."""
    size = 0
    for document in read_documents(path):
        if size >= characters:
            return
        size += len(document.text)
        yield document


def _set(name: str, folder: str) -> Dataset:
    if name == "manuals":
        first = {
            f"headings/{d.id}" for _, n, some in collections(folder, 1) if not n for d in documents_of(some)
        }
        return _restricted(read_set("train/headings", folder), first)
    dataset = read_set(name, folder)
    if name.startswith("dev/"):
        return unseen(dataset)
    return _restricted(dataset, {d.id for d in dataset.documents if calibrates(d.id)})


def _restricted(dataset: Dataset, kept: set[str]) -> Dataset:
    return dataset.restrict([d.id for d in dataset.documents if d.id in kept])


def most_possible(dataset: Dataset) -> np.ndarray:
    """(budgets,) mean percent of the evidence that fits into the budgets."""
    corpus = Positions(dataset.documents)
    fitting = [score_evidence(corpus, q.evidence, q.evidence).recall for q in dataset.questions]
    return 100 * np.mean(fitting, axis=0)


def measured(dataset: Dataset, encoder: Encoder, *, own: bool) -> np.ndarray:
    """(questions, budgets) percent of the evidence within the budgets. own: see `Kind`."""
    rag = PreciseRAG(HybridIndex.build(dataset.documents, encoder), reader=None)
    corpus = Positions(dataset.documents)
    found = []
    for question in dataset.questions:
        meant = sorted({piece.doc_id for piece in question.evidence})
        selection = rag.retrieve(question.text, filter={"$id": {"$in": meant}} if own else None)
        ranked = best_first(decision.candidate for decision in selection.decisions)
        found.append(score_evidence(corpus, ranked, question.evidence).recall)
    return 100 * np.array(found)


def row(name: str, found: np.ndarray, most: np.ndarray) -> dict[str, Any]:
    """Recall with its interval, what is possible, and what is aimed at, at each budget.

    found: (questions, budgets). most: (budgets,).
    """
    cells: dict[str, Any] = {"kind": name, "questions": len(found)}
    reached = 0
    aims = KINDS[name].aims or (None,) * 4
    for tokens, shares, possible, aim in zip(BUDGETS, found.T, most, aims, strict=True):
        mean, low, high = bootstrap_interval(shares)
        cells[f"{tokens:,} tokens"] = f"{mean:.1f} ({low:.1f} to {high:.1f})"
        cells[f"most {tokens:,}"] = f"{possible:.1f}"
        cells[f"aim {tokens:,}"] = "" if aim is None else f"{aim:g}"
        reached += aim is not None and mean >= aim
    return cells | {"reached": f"{reached} of 4" if KINDS[name].aims else ""}


def main() -> None:
    parser = record.parse_arguments(MODULE, __doc__, ",".join(KINDS), sample=40)
    parser.add_argument("--cache", type=Path, help="folder that keeps what is measured of a kind")
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    rows = []
    for name in args.sets.split(","):
        dataset = dataset_of(KINDS[name], args)
        path = args.cache and args.cache / f"path-{name.replace(' ', '-')}-{args.sample}-{args.seed}.pickle"
        if path and path.exists():
            found = pickle.loads(path.read_bytes())
        else:
            found = measured(dataset, encoder, own=KINDS[name].own)
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(pickle.dumps(found))
        rows.append(row(name, found, most_possible(dataset)))
        print(rows[-1], flush=True)
    record.save_rows(
        MODULE, args, "evidence/path", "Recall of the whole path, by kind of text", rows, doc=__doc__
    )


if __name__ == "__main__":
    main()
