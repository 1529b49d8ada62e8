"""What the library sends for questions that are answered in a collection, and for some that are not."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from precise_rag import PreciseRAG
from precise_rag.errors import EmptyIndexError
from precise_rag.evaluation import Question, load_dataset, load_development_set
from precise_rag.excerpts import excerpts_of
from precise_rag.protocols import Encoder
from precise_rag.types import Excerpt
from training.candidate_lists import calibrates, may_train_on

KINDS = ("document known", "collection searched", "another collection")
"""How a question is asked: of its document alone, of a collection that has it, or of one that has not."""

UNANSWERABLE = {"squad": "squad2", "nq": "nq"}
"""Files of questions that their documents do not answer."""


@dataclass(frozen=True)
class Sent:
    """What is sent for a question.

    source: the set of the question. group: its document. answerable: whether the documents that were
    searched answer it. holds: whether what is sent holds the answer.
    """

    source: str
    kind: str
    group: str
    question: str
    excerpts: tuple[Excerpt, ...]
    answerable: bool
    holds: bool


@dataclass(frozen=True)
class Collection:
    """Documents that the reader was not trained on, as a pipeline, with their questions."""

    name: str
    rag: PreciseRAG
    answered: Sequence[Question]
    unanswered: Sequence[Question]


def is_fitted(group: str) -> bool:
    """Check whether questions about a document are for the regression; the others are for measuring."""
    return hashlib.sha256(group.encode()).digest()[2] % 2 == 0


def collection(name: str, data: str, encoder: Encoder, n_documents: int) -> Collection:
    """Index a sample of the documents of "dev/NAME" or "train/NAME" that the reader was not trained on."""
    split, _, stem = name.partition("/")
    dataset = load_development_set(stem, data, split)
    unanswered: Sequence[Question] = ()
    if stem in UNANSWERABLE:
        asked = Path(data) / f"{split}_qa_questions_{UNANSWERABLE[stem]}_unanswerable.jsonl.gz"
        unanswered = load_dataset(Path(data) / f"{split}_qa_docs_{stem}.jsonl.gz", asked).questions
    held_out = [d for d in dataset.documents if _is_held_out(split, d.id)]
    drawn = np.random.default_rng(0).permutation(len(held_out))[:n_documents]
    documents = [replace(held_out[row], metadata={"id": held_out[row].id}) for row in drawn]
    ids = {document.id for document in documents}
    rag = PreciseRAG.from_documents(documents, encoder=encoder, reader=None)
    questions = [q for q in dataset.questions if q.evidence and q.evidence[0].doc_id in ids]
    return Collection(name, rag, questions, [q for q in unanswered if q.doc_id in ids])


def _is_held_out(split: str, doc_id: str) -> bool:
    return not may_train_on(doc_id) if split == "dev" else calibrates(doc_id)


def sent_for(
    one: Collection, questions: Sequence[Question], kind: str, source: str, n_questions: int
) -> Iterator[Sent]:
    """Yield what is sent for a sample of the questions. source: the set that they are from."""
    for row in np.random.default_rng(1).permutation(len(questions))[:n_questions]:
        question = questions[row]
        within = {"id": question.group} if kind == "document known" else None
        try:
            selection = one.rag.retrieve(question.text, filter=within)
        except EmptyIndexError:
            continue
        excerpts = excerpts_of(selection)
        places = question.evidence if kind != "another collection" else ()
        holds = any(
            excerpt.doc_id == place.doc_id and excerpt.start <= place.start and place.end <= excerpt.end
            for excerpt in excerpts
            for place in places
        )
        plain = tuple(replace(excerpt, metadata={}) for excerpt in excerpts)
        yield Sent(source, kind, question.group, question.text, plain, bool(places), holds)
