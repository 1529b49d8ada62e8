"""Datasets: documents, and questions with the spans of their evidence.

A question is one record of a .jsonl, .jsonl.gz or .csv file:

    {"id", "question", "answers": [...], "doc_id", "evidence": [{"doc_id", "start", "end"}, ...]}

Only "question" is required. Evidence may also be a quotation ("evidence": "text", or {"text"} in
place of offsets), which is looked up in the documents, or only {"doc_id"}, which is the whole
document. A .csv file has columns of the same names; its evidence is one quotation or the columns
"start" and "end", and several answers are separated by "|". Files of BEIR, ragas, LlamaIndex and
LangSmith are read, too, see `formats`.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precise_rag.documents import read_documents
from precise_rag.errors import InputError
from precise_rag.evaluation.formats import QuestionFile, read_question_file
from precise_rag.types import Document, Span

DATA_VARIABLE = "PRECISE_DATA"
"""Name of the environment variable with the folder of the development sets."""


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
    """A collection of documents with questions.

    unplaced: ids of the questions that were left out because their evidence was not found.
    without_evidence: number of questions that were left out because they have no evidence.
    """

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    unplaced: tuple[str, ...] = ()
    without_evidence: int = 0

    def with_evidence(self) -> "Dataset":
        """Return the dataset with only the questions that have evidence."""
        kept = tuple(q for q in self.questions if q.evidence)
        left_out = self.without_evidence + len(self.questions) - len(kept)
        return replace(self, questions=kept, without_evidence=left_out)

    def measurable(self) -> "Dataset":
        """Return `with_evidence()` if any question has evidence, otherwise the dataset itself."""
        return self.with_evidence() if any(q.evidence for q in self.questions) else self

    def sample(self, n_questions: int | None, seed: int = 0) -> "Dataset":
        """Return the dataset with at most `n_questions` questions, drawn with the seed, in their order."""
        if n_questions is None or len(self.questions) <= n_questions:
            return self
        drawn = np.random.default_rng(seed).permutation(len(self.questions))[:n_questions]
        return replace(self, questions=tuple(self.questions[row] for row in sorted(drawn.tolist())))

    def restrict(self, doc_ids: Sequence[str]) -> "Dataset":
        """Return the dataset with only these documents, and the questions whose evidence is all in them."""
        kept = set(doc_ids)
        return replace(
            self,
            documents=tuple(d for d in self.documents if d.id in kept),
            questions=tuple(q for q in self.questions if all(e.doc_id in kept for e in q.evidence)),
        )


def load_dataset(
    documents: str | Path | Sequence[str | Path] | None,
    questions: str | Path,
    name: str | None = None,
) -> Dataset:
    """Load documents and the questions of one file.

    documents: files or folders, see `read_documents`; records have the ids that the questions name. None: the
        texts that come with the questions, in the shapes of other tools.
    questions: a .jsonl, .jsonl.gz, .csv or .json file, or a folder of BEIR, see the module.
    name: default: the name of the question file.

    With documents, the texts of another tool's evidence are quotations that are looked up in them. A
    question whose quotations are not found goes to `unplaced`. Raises InputError with the file and line of a
    malformed record, of offsets outside the document and of an unknown document.
    """
    path = Path(questions)
    given = read_question_file(path)
    if documents is None:
        collection = given.texts
        if not collection:
            raise InputError(f"{path}: has questions only; pass the documents, too (--documents)")
    else:
        paths = [documents] if isinstance(documents, str | Path) else documents
        read = (replace(one, id=one.id.partition("#")[2] or one.id) for one in read_documents(*paths))
        collection = {document.id: document for document in read}
    asked, unplaced = _placed(path, given, collection)
    return Dataset(name or path.name.split(".")[0], tuple(collection.values()), tuple(asked), tuple(unplaced))


def read_questions(path: str | Path, documents: Iterable[Document]) -> list[Question]:
    """Read the questions of a file about documents; those whose quotations are not found are left out.

    path: as the questions of `load_dataset`.
    Raises InputError as `load_dataset` does.
    """
    path = Path(path)
    return _placed(path, read_question_file(path), {document.id: document for document in documents})[0]


def _placed(
    path: Path, given: QuestionFile, collection: Mapping[str, Document]
) -> tuple[list[Question], list[str]]:
    """The questions of a file, and the ids of those whose evidence was not found."""
    asked, unplaced, seen = [], [], set[str]()
    for place, record in given.records:
        is_row = path.suffix == ".csv" and not isinstance(
            record.get("evidence"), list
        )  # as another tool has it
        record = _from_row(record) if is_row else record
        if given.texts and collection is not given.texts:
            record = {
                **record,
                "evidence": [{"text": given.texts[e["doc_id"]].text} for e in record["evidence"]],
            }
        try:
            question = _question(record, place, collection)
        except (TypeError, AttributeError) as error:
            raise InputError(
                f'{place}: "answers", "evidence" or "doc_id" has not the form of a question\'s ({error})'
            ) from error
        if question.id in seen:
            raise InputError(f"{place}: question id {question.id!r} occurs twice; ids must be unique")
        seen.add(question.id)
        if record.get("evidence") and not question.evidence:
            unplaced.append(question.id)
        else:
            asked.append(question)
    return asked, unplaced


def load_development_set(name: str, folder: str | Path | None = None, split: str = "dev") -> Dataset:
    """Load a development set.

    name: such as "squad"; "xquad/de" is the German part of the multilingual set xquad.
    folder: of the files; default: the environment variable PRECISE_DATA.
    split: first part of the file names.

    Raises InputError if the folder, the file or documents of that language are missing.
    """
    folder = folder or os.environ.get(DATA_VARIABLE)
    if not folder:
        raise InputError(f"no data folder; pass folder= (--data DIR), or set {DATA_VARIABLE}")
    stem, _, language = name.partition("/")
    dataset = load_dataset(
        Path(folder) / f"{split}_qa_docs_{stem}.jsonl.gz",
        Path(folder) / f"{split}_qa_questions_{stem}.jsonl.gz",
        name,
    )
    if not language:
        return dataset
    documents = [d.id for d in dataset.documents if d.metadata.get("lang", "en") == language]
    if not documents:
        raise InputError(f"development set {stem!r} has no documents in language {language!r}")
    return dataset.restrict(documents)


def _from_row(row: Mapping[str, str | None]) -> dict[str, Any]:
    record: dict[str, Any] = {key: value for key, value in row.items() if value}
    answers = record.pop("answers", record.pop("answer", None))
    if answers:
        record["answers"] = [answer.strip() for answer in answers.split("|")]
    if "start" in record and "end" in record:
        start, end = record.pop("start"), record.pop("end")
        record["evidence"] = [{"doc_id": record.get("doc_id"), "start": _offset(start), "end": _offset(end)}]
    return record


def _offset(text: str) -> int | str:
    return int(text) if text.isdecimal() and len(text) < 20 else text


def _question(record: Mapping[str, Any], place: str, collection: Mapping[str, Document]) -> Question:
    text = record.get("question")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f'{place}: the record needs a "question" that is a non-empty string')
    answers = record.get("answers", record.get("answer", ()))
    given = record.get("evidence") or ()
    placed = (
        _evidence(one, record.get("doc_id"), place, collection)
        for one in ([given] if isinstance(given, str | Mapping) else given)
    )
    known = ("id", "question", "answers", "answer", "doc_id", "evidence")
    return Question(
        id=str(record.get("id", place)),
        text=text,
        evidence=tuple(evidence for evidence in placed if evidence is not None),
        answers=(answers,) if isinstance(answers, str) else tuple(map(str, answers)),
        doc_id=record.get("doc_id"),
        metadata={key: value for key, value in record.items() if key not in known},
    )


def _evidence(
    given: str | Mapping[str, Any], doc_id: str | None, place: str, collection: Mapping[str, Document]
) -> Evidence | None:
    record = {"text": given} if isinstance(given, str) else given
    doc_id = record.get("doc_id", doc_id)
    if doc_id is not None and doc_id not in collection:
        example = next(iter(collection), "")
        raise InputError(
            f"{place}: document {doc_id!r} is not among the documents, whose ids look like {example!r}"
        )
    if "start" in record and "end" in record:
        return _checked(record, doc_id, place, collection)
    if "text" not in record:
        return Evidence(doc_id, 0, len(collection[doc_id].text)) if doc_id else None
    for document in collection.values() if doc_id is None else [collection[doc_id]]:
        span = find_quote(document.text, record["text"])
        if span is not None:
            return Evidence(document.id, *span)
    return None


def _checked(
    record: Mapping[str, Any], doc_id: str | None, place: str, collection: Mapping[str, Document]
) -> Evidence:
    if doc_id is None:
        raise InputError(f'{place}: evidence with offsets needs a "doc_id"')
    start, end, length = record["start"], record["end"], len(collection[doc_id].text)
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= length):
        raise InputError(
            f"{place}: evidence offsets {start!r}-{end!r} do not fit document {doc_id!r} "
            f"of {length} characters"
        )
    return Evidence(doc_id, start, end)


def find_quote(text: str, quote: str) -> Span | None:
    """Return the first span of `quote` in `text`, exact or else ignoring white space and case; or None."""
    quote = quote.strip()
    if not quote:
        return None
    start = text.find(quote)
    if start >= 0:
        return Span(start, start + len(quote))
    pattern = r"\s+".join(map(re.escape, quote.split()))
    match = re.search(pattern, text, re.IGNORECASE)
    return Span(*match.span()) if match else None
