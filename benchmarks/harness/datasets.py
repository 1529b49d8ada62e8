"""Question sets: documents, and questions with the places of their evidence.

The set NAME is two files with a JSON object a line:

    dev_qa_docs_NAME.jsonl.gz       "id", "title", and "text" or "sections": [{"heading", "paragraphs"}]
    dev_qa_questions_NAME.jsonl.gz  "id", "question", "answers", "doc_id", and "evidence":
                                    [{"doc_id", "start", "end"}] in characters of the document's text;
                                    without them, all of it

No benchmark asks about a document that a packaged model was trained on; the documents stay in the collection.
"""

import gzip
import hashlib
import json
import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precise_rag.types import Document

HALVED = ("squad", "covidqa", "fairytaleqa", "qmsum")
"""Development sets of which half of the documents may be trained on; the other half is for benchmarks."""
UNSEEN = ("hotpotqa", "nq", "cuad")
"""Development sets of which nothing is trained on."""

_TEXTS = ("squad", "hotpotqa", "nq", "fairytaleqa", "covidqa", "rgb", "cuad", "qmsum")
_NO_METADATA = ("id", "text", "sections", "sentences", "source")


class Evidence(NamedTuple):
    """A span of a document that holds the answer or a part of it."""

    doc_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its evidence and accepted answers.

    doc_id: the document that the question is about, if known. metadata: all other keys of the record.
    """

    id: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    answers: tuple[str, ...] = ()
    doc_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def group(self) -> str:
        """Group of the question in statistics: its document, or its own id if that is not known."""
        return self.evidence[0].doc_id if self.evidence else self.doc_id or self.id


@dataclass(frozen=True, slots=True)
class Dataset:
    """A collection of documents with questions."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]

    def with_evidence(self) -> "Dataset":
        """Return the dataset with only the questions that have evidence."""
        return replace(self, questions=tuple(q for q in self.questions if q.evidence))

    def measurable(self) -> "Dataset":
        """Return `with_evidence()` if any question has evidence, otherwise the dataset itself."""
        return self.with_evidence() if any(q.evidence for q in self.questions) else self

    def sample(self, n_questions: int | None, seed: int = 0) -> "Dataset":
        """Return the dataset with at most `n_questions` questions, drawn with the seed, in their order."""
        if n_questions is None or len(self.questions) <= n_questions:
            return self
        drawn = np.random.default_rng(seed).permutation(len(self.questions))[:n_questions]
        return replace(self, questions=tuple(self.questions[row] for row in sorted(drawn.tolist())))

    def restrict(self, doc_ids: Iterable[str]) -> "Dataset":
        """Return the dataset with only these documents, and the questions whose evidence is all in them."""
        kept = set(doc_ids)
        return replace(
            self,
            documents=tuple(d for d in self.documents if d.id in kept),
            questions=tuple(q for q in self.questions if all(e.doc_id in kept for e in q.evidence)),
        )


def read_lines(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a .jsonl or .jsonl.gz file."""
    reader = gzip.open if Path(path).suffix == ".gz" else open
    with reader(path, "rt", encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def read_documents(path: str | Path) -> Iterator[Document]:
    """Yield the documents of a file."""
    for record in read_lines(path):
        text = record.get("text")
        if text is None:
            text = "\n\n".join(p for section in record["sections"] for p in section["paragraphs"])
        metadata = {key: value for key, value in record.items() if key not in _NO_METADATA}
        yield Document(str(record["id"]), text, metadata)


def load_dataset(documents: str | Path, questions: str | Path, name: str) -> Dataset:
    """Load the documents and the questions of two files.

    Raises ValueError for evidence outside of the documents.
    """
    collection = {document.id: document for document in read_documents(documents)}
    asked = []
    for record in read_lines(questions):
        evidence = tuple(_evidence(span, collection) for span in record.get("evidence") or ())
        known = ("id", "question", "answers", "doc_id", "evidence")
        asked.append(
            Question(
                str(record["id"]),
                record["question"],
                evidence,
                tuple(map(str, record.get("answers", ()))),
                record.get("doc_id"),
                {key: value for key, value in record.items() if key not in known},
            )
        )
    return Dataset(name, tuple(collection.values()), tuple(asked))


def _evidence(span: Mapping[str, Any], collection: Mapping[str, Document]) -> Evidence:
    size = len(collection[span["doc_id"]].text) if span["doc_id"] in collection else 0
    found = Evidence(span["doc_id"], span.get("start", 0), span.get("end", size))
    if not 0 <= found.start < found.end <= size:
        raise ValueError(f"evidence {found} is in no document")
    return found


def load_development_set(name: str, folder: str | Path | None = None, split: str = "dev") -> Dataset:
    """Load a set, such as "squad"; "across" is XQuAD asked in English, over articles in other languages.

    folder: of the files; default: the environment variable PRECISE_DATA. split: first part of the file names.
    """
    if name == "across":
        return replace(_across(load_development_set("xquad", folder)), name=name)
    data = Path(folder or os.environ["PRECISE_DATA"])
    docs, questions = (data / f"{split}_qa_{kind}_{name}.jsonl.gz" for kind in ("docs", "questions"))
    return load_dataset(docs, questions, name)


def _across(xquad: Dataset) -> Dataset:
    titles = sorted({d.id[9:] for d in xquad.documents if not may_train_on(f"squad/{d.id[9:]}")})
    pairs = zip(cycle(("de", "es", "zh", "ar", "ru")), titles, strict=False)
    kept = xquad.restrict(f"xquad/{language}/{title}" for language, title in pairs)
    texts = {one.id: one.text for one in xquad.questions}
    return replace(kept, questions=tuple(replace(q, text=texts[f"en/{q.id[3:]}"]) for q in kept.questions))


def may_train_on(doc_id: str) -> bool:
    """Check whether a document of a halved set may be trained on; decided by its id."""
    return hashlib.sha256(doc_id.encode()).digest()[0] % 2 == 0


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
    """Documents that nothing was trained on, up to --characters, and questions about them."""
    dataset = unseen(load_development_set(name, args.data).with_evidence())
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
    questions = dataset.restrict(document.id for document in documents).questions
    return documents, [questions[place] for place in rng.permutation(len(questions)).tolist()]


def real_documents(folder: str | Path) -> Iterator[Document]:
    """Yield the documents of the development sets, SQuAD's first, and then articles of Wikipedia."""
    for file in (*(f"dev_qa_docs_{name}" for name in _TEXTS), "train_docs_wikipedia"):
        yield from read_documents(Path(folder) / f"{file}.jsonl.gz")
