"""Build the training lists: sentences, questions, which sentences answer them, and what BM25 finds.

    python -m training.multilingual.lists OUT --data DIR

OUT is a folder and gets one file for each set, with a pickled list of `Lists`. The sets are human questions,
also in other languages; questions made from training documents ("weak"); and questions in one language over
documents in another ("across"). The questions about one in eight documents are kept out of training.
"""

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.harness.datasets import Question, load_development_set, may_train_on
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate, Document
from training.candidate_lists import (
    SETS,
    WordChunks,
    asks_itself,
    collections_of,
    holds_evidence,
    is_kept,
    load_trainable,
    new_parser,
    with_documents,
)
from training.weak_questions import as_typed, asked_of, collections, documents_of

FOREIGN = ("train/jaquad", "train/multilingual")
N_DOCUMENTS = {"train/cuad": 90, "train/jaquad": 450, "train/medquad": 900, "train/qmsum": 70}
"""Documents drawn from large sets."""
CHARACTERS = 500_000
"""Characters of a collection, all of which is searched; half as many in other languages."""
OWN_DOCUMENT = ("train/cuad", "train/friendsqa")
"""Sets whose questions do not say which document they are about: it alone is searched."""
WEAK_ROUNDS, WEAK_QUESTIONS = 2, 300

NEGATIVES, FEWEST = 14, 10
"""Sentences that BM25 finds, at most, and sentences of a collection, at least."""
LONGEST = 1_000
"""Characters of a question."""

Asked = tuple[Sequence[Document], Sequence[Question]]
"""A collection with its questions. Of a question that a document asks itself, the metadata say where."""


class Labelled(NamedTuple):
    """A question and rows of sentences: that answer it, that BM25 finds, and that are neither.

    kept: whether it is kept out of training.
    """

    question: str
    kept: bool
    positives: list[int]
    negatives: list[int]
    skipped: list[int]


class Lists(NamedTuple):
    """A collection: the text of each document by its id, the sentences, and the questions."""

    texts: dict[str, str]
    sentences: list[Candidate]
    questions: list[Labelled]


def lists_of(documents: Sequence[Document], questions: Iterable[Question]) -> Lists:
    """Label the questions of a collection; those whose evidence is in none of its sentences are left out."""
    search, labelled = WordChunks(documents, HashEncoder(), "sentences"), []
    of_document: dict[str, list[int]] = defaultdict(list)
    for row, sentence in enumerate(search.chunks):
        of_document[sentence.doc_id].append(row)
    for question in questions if len(search.chunks) >= FEWEST else ():
        about = {evidence.doc_id for evidence in question.evidence}
        positives, skipped = judge(question, search.chunks, [row for d in about for row in of_document[d]])
        if positives or not question.evidence:
            scores = search.scores(question.text)
            best = [row for row in np.argsort(-scores, kind="stable")[:60].tolist() if scores[row] > 0]
            negatives = [row for row in best if row not in positives and row not in skipped][:NEGATIVES]
            kept = is_kept(question.group)
            labelled.append(Labelled(question.text[:LONGEST], kept, positives, negatives, skipped))
    return Lists({d.id: d.text for d in documents}, search.chunks, labelled)


def judge(
    question: Question, sentences: Sequence[Candidate], rows: Iterable[int]
) -> tuple[list[int], list[int]]:
    """Return the rows of sentences that answer a question, and of those that may, too, or that ask it."""
    positives, skipped = [], []
    answers = [answer for answer in question.answers[:3] if 3 <= len(answer) <= 60]
    for row in rows:
        one = sentences[row]
        if asks_itself(one, question):
            skipped.append(row)
        elif holds_evidence(one, question.evidence):
            positives.append(row)
        elif any(answer in one.text for answer in answers):
            skipped.append(row)
    return positives, skipped


def human(name: str, data: str) -> Iterator[Asked]:
    """Yield the collections of a set such as "train/nq"; English questions are partly made sloppy."""
    dataset, random = load_trainable(name, data), np.random.default_rng(2)
    dataset = with_documents(dataset, N_DOCUMENTS.get(name))
    for one in collections_of(dataset, CHARACTERS // 2 if name in FOREIGN else CHARACTERS):
        asked = [q if name in FOREIGN else replace(q, text=as_typed(q.text, random)) for q in one.questions]
        if name not in OWN_DOCUMENT:
            yield one.documents, asked
        else:
            yield from (([d], [q for q in asked if q.group == d.id]) for d in one.documents)


def weak(data: str) -> Iterator[Asked]:
    """Yield the collections of training documents, with questions made from them."""
    random = np.random.default_rng(3)
    for _, _, records in collections(data, WEAK_ROUNDS):
        asked = asked_of(records, WEAK_QUESTIONS, random)
        yield documents_of(records), [replace(one, text=as_typed(one.text, random)) for one in asked]


def xquad(data: str) -> Iterator[Asked]:
    """Yield XQuAD's articles that may be trained on, by language; half of the questions in others."""
    random, dataset = np.random.default_rng(4), load_development_set("xquad", data)
    versions: dict[str, list[Question]] = defaultdict(list)
    for question in dataset.questions:
        versions[question.id.partition("/")[2]].append(question)
    documents: dict[str, list[Document]] = defaultdict(list)
    for document in dataset.documents:
        if may_train_on("squad/" + document.id.split("/", 2)[2]):
            documents[document.metadata["lang"]].append(replace(document, metadata={}))
    for several in documents.values():
        ids = {document.id for document in several}
        about = (question for question in dataset.questions if question.group in ids and question.evidence)
        asked = [
            replace(own, text=other.text)
            for own in about
            for other in versions[own.id.partition("/")[2]]
            if own is other or random.random() < 0.5
        ]
        yield several, asked


def main() -> None:
    options = new_parser("training.multilingual.lists", __doc__).parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sets = {name: human(name, options.data) for name in (*SETS, *FOREIGN)}
    sets |= {"weak": weak(options.data), "across": xquad(options.data)}
    for name, several in sets.items():
        made = [lists_of(*one) for one in several]
        (options.out / f"{name.replace('/', '-')}.pickle").write_bytes(pickle.dumps(made))
        print(f"{name}: {sum(len(one.questions) for one in made)} questions", flush=True)


if __name__ == "__main__":
    main()
