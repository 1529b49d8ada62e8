"""The questions that benchmarks ask, and real text to make a collection large.

No question is about a document that a packaged model was trained on; the documents stay in the collection.
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from precise_rag.documents import read_documents
from precise_rag.evaluation import Dataset, Question, load_development_set
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


def held_out(name: str, args: Namespace) -> tuple[list[Document], list[Question]]:
    """Documents that nothing was trained on, up to --characters, and questions about them.

    name: of a development set, or of a part of it by the ids of its documents, as "xquad/de".
    """
    stem, _, part = name.partition("/")
    dataset = unseen(load_development_set(stem, args.data).with_evidence())
    if part:
        dataset = dataset.restrict([one.id for one in dataset.documents if f"/{part}/" in one.id])
    documents, questions = drawn(dataset, args.characters, args.seed)
    return documents, questions[: args.sample]


def drawn(dataset: Dataset, characters: int, seed: int) -> tuple[list[Document], list[Question]]:
    """Documents that questions are about, up to so many characters, and the questions; in seeded order."""
    asked_about = {e.doc_id for q in dataset.questions for e in q.evidence}
    rng = np.random.default_rng(seed)
    documents, size = [], 0
    for place in rng.permutation(len(dataset.documents)).tolist():
        document = dataset.documents[place]
        if document.id in asked_about and (not documents or size + len(document.text) <= characters):
            documents.append(document)
            size += len(document.text)
    known = {document.id for document in documents}
    questions = [q for q in dataset.questions if all(e.doc_id in known for e in q.evidence)]
    return documents, [questions[place] for place in rng.permutation(len(questions)).tolist()]


def real_documents(folder: str | Path) -> Iterator[Document]:
    """Yield the documents of the development sets, SQuAD's first, and then articles of Wikipedia."""
    files = [f"dev_qa_docs_{name}" for name in _TEXTS]
    for file in (*files, "train_docs_wikipedia"):
        yield from read_documents(Path(folder) / f"{file}.jsonl.gz")
