"""The questions that benchmarks ask, and real text to make a collection large.

No question is about a document that a packaged model was trained on; the documents stay in the collection.
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from precise_rag.documents import read_documents
from precise_rag.evaluation import Dataset, load_development_set
from precise_rag.types import Document
from training.candidate_lists import HALVED, may_train_on

UNSEEN = ("hotpotqa", "nq", "cuad")
"""Development sets of which nothing is trained on."""

_TEXTS = ("squad", "hotpotqa", "nq", "fairytaleqa", "covidqa", "rgb", "cuad", "qmsum")


def unseen(dataset: Dataset, name: str = "") -> Dataset:
    """Return the dataset without the questions about documents that packaged models were trained on.

    name: of the development set; default: that of the dataset.
    """
    if (name or dataset.name) not in HALVED:
        return dataset
    return replace(dataset, questions=tuple(q for q in dataset.questions if not may_train_on(q.group)))


def question_sets(args: Namespace) -> Iterator[Dataset]:
    """Yield the sets of --sets with at most --sample questions each; evidence is needed if any has some."""
    for name in args.sets.split(","):
        yield unseen(load_development_set(name, args.data).measurable()).sample(args.sample, args.seed)


def real_documents(folder: str | Path) -> Iterator[Document]:
    """Yield the documents of the development sets, SQuAD's first, and then articles of Wikipedia."""
    files = [f"dev_qa_docs_{name}" for name in _TEXTS]
    for file in (*files, "train_docs_wikipedia"):
        yield from read_documents(Path(folder) / f"{file}.jsonl.gz")
