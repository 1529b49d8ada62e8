"""Recall of evidence at token budgets by the whole default path, by kind of text, beside what we aim at.

    python -m benchmarks.evidence.path --data DIR [--kinds stories,news] [--sample 60] [--cache DIR]

The likeliest sentences of the path, cut where the budget is full. Nothing of ours was trained on the
documents: development sets, of which halved ones are asked about the other half, and of training sets the
documents that are kept out. Manuals are those whose headings ask a question, of the documents that the weak
questions leave to benchmarks. Each collection is all documents of its set, or all that are kept out;
"mixed" is one collection of small sets with long noise: novels and textbooks that nothing is asked about.
The rows "(own)" ask of the contract or meeting meant alone, which the questions of these sets do not name.

--cache: folder that keeps what is measured of a kind, so that the command goes on where it stopped.
"""

import pickle
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.questions import unseen
from precise_rag import PreciseRAG
from precise_rag.documents import read_documents
from precise_rag.encoders import CachedEncoder
from precise_rag.evaluation import BUDGETS, Dataset, Positions, bootstrap_interval, score_evidence
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import HybridIndex
from precise_rag.types import best_first
from training.candidate_lists import calibrates, read_set
from training.weak_questions import collections, documents_of

MODULE = "benchmarks.evidence.path"


class Kind(NamedTuple):
    """A kind of text. aims: recall (%) within each budget. own: whether each document is asked alone."""

    sets: tuple[str, ...]
    aims: tuple[float, float, float, float] | None = None
    own: bool = False


KINDS = {
    "stories": Kind(("dev/fairytaleqa",), (55, 74, 87, 94)),
    "research articles": Kind(("dev/covidqa",), (80, 88, 92, 95)),
    "encyclopedia": Kind(("dev/squad",), (96, 98, 99, 99.5)),
    "two hops": Kind(("dev/hotpotqa",), (74, 86, 93, 97)),
    "web questions": Kind(("dev/nq", "train/nq"), (55, 70, 78, 86)),
    "contracts": Kind(("dev/cuad",), (24, 36, 46, 58)),
    "contracts (own)": Kind(("dev/cuad",), own=True),
    "meetings": Kind(("dev/qmsum",), (14, 23, 33, 42)),
    "meetings (own)": Kind(("dev/qmsum",), own=True),
    "dialogues": Kind(("train/friendsqa",), (72, 82, 88, 93)),
    "help pages": Kind(("train/faq",), (60, 72, 83, 90)),
    "finance": Kind(("train/tatqa",), (95, 98, 99, 99.5)),
    "news": Kind(("dev/rgb",), (92, 98, 99, 99.5)),
    "manuals": Kind(("manuals",), (82, 92, 96, 98)),
    "mixed": Kind(
        ("dev/fairytaleqa", "dev/hotpotqa", "dev/nq", "dev/rgb", "train/friendsqa", "train/tatqa"),
        (80, 90, 95, 98),
    ),
}
NOISE = {"standardebooks": 1_000_000, "openstax": 500_000}
"""Characters of long documents in the mixed collection, by source."""


def dataset_of(kind: Kind, args: Namespace, *, noise: Mapping[str, int] | None = None) -> Dataset:
    """Documents of a kind, and the questions drawn: as many of each set."""
    several = [_set(name, args.data) for name in kind.sets]
    per_set = -(-args.sample // len(several))
    asked = [question for one in several for question in one.sample(per_set, args.seed).questions]
    documents = [document for one in several for document in one.documents]
    for source, characters in (noise or {}).items():
        size = 0
        for document in read_documents(Path(args.data) / f"train_docs_{source}.jsonl.gz"):
            if size > characters:
                break
            documents.append(document)
            size += len(document.text)
    return replace(several[0], documents=tuple(documents), questions=tuple(asked))


def _set(name: str, folder: str) -> Dataset:
    if name == "manuals":
        return _manuals(folder)
    dataset = read_set(name, folder)
    if name.startswith("dev/"):
        return unseen(dataset)
    return dataset.restrict([d.id for d in dataset.documents if calibrates(d.id)])


def _manuals(folder: str) -> Dataset:
    """The documents with headings that ask, of the first collection of each source."""
    first = {
        f"headings/{document.id}"
        for _, number, records in collections(folder, 1)
        for document in documents_of(records)
        if not number
    }
    dataset = read_set("train/headings", folder)
    return dataset.restrict([document.id for document in dataset.documents if document.id in first])


def recalls(dataset: Dataset, encoder: CachedEncoder, *, own: bool) -> Iterator[np.ndarray]:
    """Yield the (budgets,) recall of each question's evidence. own: asked of its own documents alone."""
    rag = PreciseRAG(HybridIndex.build(dataset.documents, encoder), reader=None)
    corpus = Positions(dataset.documents)
    for question in dataset.questions:
        within = {"$id": {"$in": sorted({e.doc_id for e in question.evidence})}} if own else None
        selection = rag.retrieve(question.text, filter=within)
        ranked = best_first(decision.candidate for decision in selection.decisions)
        yield score_evidence(corpus, ranked, question.evidence).recall


def measured(name: str, args: Namespace, encoder: CachedEncoder) -> np.ndarray:
    """(questions, budgets) recall of a kind; kept in the folder `args.cache`."""
    path = args.cache and args.cache / f"path-{name.replace(' ', '-')}-{args.sample}-{args.seed}.pickle"
    if path and path.exists():
        kept: np.ndarray = pickle.loads(path.read_bytes())
        return kept
    kind = KINDS[name]
    dataset = dataset_of(kind, args, noise=NOISE if name == "mixed" else None)
    found = np.array(list(recalls(dataset, encoder, own=kind.own)))
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(found))
    return found


def table(found: Mapping[str, np.ndarray]) -> str:
    """One row a kind: recall with its 95 % interval, and what is missing to the aim."""
    rows = []
    for name, values in found.items():
        aims = KINDS[name].aims
        cells = []
        for column in range(len(BUDGETS)):
            mean, low, high = bootstrap_interval(100 * values[:, column])
            aim = "" if aims is None else f", aim {aims[column]:g}"
            cells.append(f"{mean:.1f} ({low:.1f} to {high:.1f}){aim}")
        reached = "" if aims is None else f"{_reached(values, aims)} of {len(BUDGETS)}"
        rows.append([name, str(len(values)), *cells, reached])
    return format_markdown(("kind", "questions", *(f"{n:,} tokens" for n in BUDGETS), "aims reached"), rows)


def _reached(values: np.ndarray, aims: Sequence[float]) -> int:
    return int((100 * values.mean(axis=0).round(3) >= np.array(aims)).sum())


def main() -> None:
    parser = record.new_parser(MODULE, __doc__)
    parser.add_argument("--kinds", default=",".join(KINDS), help="default: %(default)s")
    parser.add_argument("--sample", type=int, default=60, help="questions a kind at most (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=Path("evaluation"), help="vectors (%(default)s)")
    parser.add_argument("--vectors", type=Path, help="vector cache (default: in the work folder)")
    parser.add_argument("--cache", type=Path, help="folder that keeps what is measured of a kind")
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    found = {}
    for name in args.kinds.split(","):
        found[name] = measured(name, args, encoder)
        print(name, len(found[name]), (100 * found[name].mean(axis=0)).round(1), flush=True)
    about = (__doc__ or "").split("\n\n", 2)[2].strip()
    markdown = f"# Recall of the whole path, by kind of text\n\n{about}\n\n{table(found)}"
    data = {"recall": {name: values.mean(axis=0).round(4).tolist() for name, values in found.items()}}
    record.save("evidence", "path", record.made(MODULE, args), markdown, data)


if __name__ == "__main__":
    main()
