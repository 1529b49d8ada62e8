"""Paragraphs with the questions that are asked of them, for the reader."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from precise_rag.evaluation import Question, load_dataset, load_development_set
from precise_rag.sentences import load_sentence_splitter
from precise_rag.types import Document, Span
from training.candidate_lists import calibrates, may_train_on

TRAINED = ("squadshifts", "squad2-part", "afriqa", "nq", "friendsqa")
"""Sets with short answers."""

LONGEST_ANSWER = 120
"""Characters of an answer, at most."""

UNANSWERABLE = {"train": ("squad2-part", "nq"), "dev": ("squad2",)}
"""Files of questions that the paragraph they were written for does not answer."""

SPEECHES = 12
"""Utterances of a dialogue that are read as one paragraph."""


@dataclass
class Paragraph:
    """A paragraph: its text, the spans of its sentences, and its questions.

    asked: each question with the spans of its answers; none if the paragraph does not answer it.
    """

    text: str
    doc_id: str
    source: str
    sentences: list[Span]
    asked: list[tuple[str, list[Span]]] = field(default_factory=list)


def trained_paragraphs(folder: str | None) -> list[Paragraph]:
    """Return the paragraphs that may be trained on."""
    found = []
    for name in TRAINED:
        found += paragraphs("train", name, folder, partial(is_trained, name=name))
    return found + paragraphs("dev", "squad", folder, may_train_on)


def is_trained(doc_id: str, name: str) -> bool:
    """Check whether a document of a training set is trained on; `squad2-part` has too few to keep one out."""
    return name == "squad2-part" or not calibrates(doc_id)


def paragraphs(
    split: str, name: str, folder: str | None, taken: Callable[[str], bool] = lambda doc_id: True
) -> list[Paragraph]:
    """Return the paragraphs of a set that have questions, such as ("train", "nq").

    taken: which documents are read, by their ids; default: all.
    """
    dataset = load_development_set(name, folder, split)
    texts = {document.id: document for document in dataset.documents}
    found: dict[str, list[tuple[int, Paragraph]]] = {}
    for question in [*dataset.questions, *_unanswerable(split, name, folder)]:
        places = [e for e in question.evidence if e.end - e.start <= LONGEST_ANSWER]
        doc_id = places[0].doc_id if places else question.doc_id
        if doc_id is None or not taken(doc_id):
            continue
        if not (places or question.metadata.get("unanswerable")):
            continue
        if doc_id not in found:
            found[doc_id] = list(_split(texts[doc_id], name))
        if places:
            _ask(question, [Span(e.start, e.end) for e in places if e.doc_id == doc_id], found[doc_id])
        else:
            _, paragraph = found[doc_id][question.metadata["gold_paragraphs"][0]]
            paragraph.asked.append((question.text, []))
    return [p for several in found.values() for _, p in several if p.asked]


def _unanswerable(split: str, name: str, folder: str | None) -> Sequence[Question]:
    stem = "squad2" if (split, name) == ("dev", "squad") else name
    if stem not in UNANSWERABLE[split] or folder is None:
        return ()
    asked = Path(folder) / f"{split}_qa_questions_{stem}_unanswerable.jsonl.gz"
    return load_dataset(Path(folder) / f"{split}_qa_docs_{name}.jsonl.gz", asked).questions


def _ask(question: Question, places: Sequence[Span], of_document: Sequence[tuple[int, Paragraph]]) -> None:
    """Add a question to each paragraph that holds one of its answers."""
    for first, paragraph in of_document:
        last = first + len(paragraph.text)
        inside = [Span(s - first, e - first) for s, e in places if first <= s and e <= last]
        if inside:
            paragraph.asked.append((question.text, inside))


def _split(document: Document, name: str) -> Iterator[tuple[int, Paragraph]]:
    """Yield the paragraphs of a document with the offsets where they begin."""
    parts = document.text.split("\n\n")
    at_once = SPEECHES if name == "friendsqa" else 1
    start = 0
    for first in range(0, len(parts), at_once):
        text = "\n\n".join(parts[first : first + at_once])
        spans = [Span(s.start, s.end) for s in load_sentence_splitter().split(text)]
        yield start, Paragraph(text, document.id, name, spans)
        start += len(text) + 2


def rarity(several: Sequence[Paragraph], words: Mapping[str, set[str]]) -> dict[str, float]:
    """Return the inverse document frequency of each word of the paragraphs. words: of each text."""
    counts: dict[str, int] = {}
    for paragraph in several:
        for word in words[paragraph.text]:
            counts[word] = counts.get(word, 0) + 1
    return {word: float(np.log(1 + len(several) / n)) for word, n in counts.items()}
