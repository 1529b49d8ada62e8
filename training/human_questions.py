"""Human questions that may be trained on, over collections of their documents."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness.datasets import (
    HALVED,
    Dataset,
    Question,
    load_dataset,
    load_development_set,
    may_train_on,
)
from precise_rag.types import Document
from training.kinds import KINDS

ENGLISH = tuple(sorted(name for names in KINDS.values() for name in names))
"""Sets with a training split, in English."""

SETS = (*(f"train/{name}" for name in ENGLISH), *(f"dev/{name}" for name in HALVED))
"""Question sets; of those that begin with "dev" half of the documents."""

UNANSWERABLE = ("nq", "squad2-part")
"""Sets with a file of questions that their documents do not answer."""

JOINED = ("afriqa", "nq", "pira", "pubmedqa", "squad-sentences", "tatqa")
"""Sets whose documents were put together from several texts: their titles say nothing."""


class Collection(NamedTuple):
    """Documents of a set, and the questions asked of them. number: of the collection in its set."""

    name: str
    number: int
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


def load_trainable(name: str, folder: str | None) -> Dataset:
    """Load what may be trained on of a set such as "train/nq", with questions that have no answer there.

    The metadata of a document are its title, empty where it says nothing, and its "id", to search it alone.
    """
    split, _, stem = name.partition("/")
    dataset = load_development_set(stem, folder, split).with_evidence()
    if split == "dev":
        dataset = dataset.restrict([d.id for d in dataset.documents if may_train_on(d.id)])
    titles = [d.metadata.get("title") or "" if stem not in JOINED else "" for d in dataset.documents]
    documents = (
        replace(d, metadata={"title": title, "id": d.id})
        for d, title in zip(dataset.documents, titles, strict=True)
    )
    dataset = replace(dataset, name=name, documents=tuple(documents))
    if stem in UNANSWERABLE:
        data = Path(folder or os.environ["PRECISE_DATA"])
        asked = data / f"train_qa_questions_{stem}_unanswerable.jsonl.gz"
        unanswered = load_dataset(data / f"train_qa_docs_{stem}.jsonl.gz", asked, stem)
        dataset = replace(dataset, questions=(*dataset.questions, *unanswered.questions))
    return dataset


def collections_of(dataset: Dataset, characters: Sequence[int]) -> Iterator[Collection]:
    """Split a set into collections of documents that questions need together, in random order.

    characters: size of each collection, in turn, as often as the set suffices for; of a smaller set each is
    smaller in proportion, so that there is one of every size. Documents that no question is about, and
    questions that need documents of several collections, are left out.
    """
    texts = {document.id: document for document in dataset.documents}
    share = min(1.0, sum(len(document.text) for document in dataset.documents) / sum(characters))
    order = np.random.default_rng(0).permutation(len(dataset.questions))
    taken: set[str] = set()
    inside: dict[str, None] = {}
    number = size = 0
    for row in order:
        new = [key for key in documents_of(dataset.questions[row]) if key in texts and key not in taken]
        taken.update(new)
        inside.update(dict.fromkeys(new))
        size += sum(len(texts[key].text) for key in new)
        if size > share * characters[number % len(characters)]:
            yield _collection(dataset, number, inside)
            inside, size, number = {}, 0, number + 1
    if inside:
        yield _collection(dataset, number, inside)


def documents_of(question: Question) -> list[str]:
    """Return the ids of the documents that belong to a question: with its evidence, or offered with it."""
    own = [question.doc_id] if question.doc_id else []
    offered = question.metadata.get("candidates", ())
    return list(dict.fromkeys([*(one.doc_id for one in question.evidence), *own, *offered]))


def _collection(dataset: Dataset, number: int, inside: dict[str, None]) -> Collection:
    questions = tuple(q for q in dataset.questions if inside.keys() >= set(documents_of(q)))
    documents = tuple(d for d in dataset.documents if d.id in inside)
    return Collection(dataset.name, number, documents, questions)
