"""Documents with questions whose evidence has a place in them.

A question record (.jsonl, .jsonl.gz or .csv) is

    {"id", "question", "answers": [...], "doc_id", "evidence": [{"doc_id", "start", "end"}, ...]}

Only "question" is required. Evidence may also be a quotation ("evidence": "text", or {"text"} in
place of offsets), which is looked for in the documents, or {"doc_id"} alone: that whole document.
In a .csv file the columns have the same names, evidence is one quotation or the columns start and
end, and several answers are separated by "|".
"""

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precise_rag.documents import read_documents, read_json_lines, read_text
from precise_rag.errors import InputError
from precise_rag.types import Document, Span

DATA_VARIABLE = "PRECISE_DATA"
"""Environment variable with the folder of the development sets."""


class Evidence(NamedTuple):
    """`text[start:end]` of one document: a place that holds (part of) the answer."""

    doc_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question, where its answer stands, and the answers that are accepted."""

    id: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    answers: tuple[str, ...] = ()
    doc_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def group(self) -> str:
        """What the question shares with others: its document. For bootstrap by group."""
        return self.evidence[0].doc_id if self.evidence else self.doc_id or self.id


@dataclass(frozen=True, slots=True)
class Dataset:
    """A collection and the questions asked of it.

    unplaced: ids of questions whose evidence was not found. without_evidence: how many questions were
    left out because they have none.
    """

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    unplaced: tuple[str, ...] = ()
    without_evidence: int = 0

    def with_evidence(self) -> "Dataset":
        """Only the questions that have evidence."""
        kept = tuple(q for q in self.questions if q.evidence)
        left_out = self.without_evidence + len(self.questions) - len(kept)
        return replace(self, questions=kept, without_evidence=left_out)

    def measurable(self) -> "Dataset":
        """Only the questions that have evidence; all if none has, for tokens and answers at least."""
        return self.with_evidence() if any(q.evidence for q in self.questions) else self

    def sample(self, n_questions: int | None, seed: int = 0) -> "Dataset":
        """At most `n_questions`, drawn with the seed and kept in order; all documents stay."""
        if n_questions is None or len(self.questions) <= n_questions:
            return self
        drawn = np.random.default_rng(seed).permutation(len(self.questions))[:n_questions]
        return replace(self, questions=tuple(self.questions[row] for row in sorted(drawn.tolist())))

    def restrict(self, doc_ids: Sequence[str]) -> "Dataset":
        """Only these documents, and the questions whose evidence lies in them entirely."""
        kept = set(doc_ids)
        return replace(
            self,
            documents=tuple(d for d in self.documents if d.id in kept),
            questions=tuple(q for q in self.questions if all(e.doc_id in kept for e in q.evidence)),
        )


def load_dataset(
    documents: str | Path | Sequence[str | Path], questions: str | Path, name: str | None = None
) -> Dataset:
    """Documents (see `read_documents`) with the questions of one file.

    Raises InputError, naming file and line, for a malformed record, offsets outside the document
    and an unknown document. A quotation that is not found puts the question into `unplaced`.
    """
    paths = [documents] if isinstance(documents, str | Path) else documents
    collection = {document.id: document for document in read_documents(*paths)}
    path = Path(questions)
    asked, unplaced, seen = [], [], set[str]()
    for place, record in _records(path):
        question = _question(record, place, collection)
        if question.id in seen:
            raise InputError(f"{place}: question id {question.id!r} occurs twice; give each its own")
        seen.add(question.id)
        if record.get("evidence") and not question.evidence:
            unplaced.append(question.id)
        else:
            asked.append(question)
    return Dataset(name or path.name.split(".")[0], tuple(collection.values()), tuple(asked), tuple(unplaced))


def load_development_set(name: str, folder: str | Path | None = None, split: str = "dev") -> Dataset:
    """The set `name` (such as "squad") from `folder`, or from the folder in PRECISE_DATA.

    "xquad/de" is the German part of xquad: a multilingual set holds the same text several times.
    """
    folder = folder or os.environ.get(DATA_VARIABLE)
    if not folder:
        raise InputError(f"no data folder; pass one, or set {DATA_VARIABLE}")
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
        raise InputError(f"{stem} has no documents in {language!r}")
    return dataset.restrict(documents)


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix == ".csv":
        rows = csv.DictReader(io.StringIO(read_text(path), newline=""))
        for number, row in enumerate(rows, start=2):
            yield f"{path}, row {number}", _from_row(row)
    else:
        for _, place, record in read_json_lines(path):
            yield place, record


def _from_row(row: Mapping[str, str | None]) -> dict[str, Any]:
    record: dict[str, Any] = {key: value for key, value in row.items() if value}
    answers = record.pop("answers", record.pop("answer", None))
    if answers:
        record["answers"] = [answer.strip() for answer in answers.split("|")]
    if "start" in record and "end" in record:
        start, end = record.pop("start"), record.pop("end")
        record["evidence"] = [{"doc_id": record.get("doc_id"), "start": int(start), "end": int(end)}]
    return record


def _question(record: Mapping[str, Any], place: str, collection: Mapping[str, Document]) -> Question:
    text = record.get("question")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f'{place}: the record needs a "question" that is a non-empty string')
    answers = record.get("answers", record.get("answer", ()))
    pieces = record.get("evidence") or ()
    found = (
        _evidence(piece, record.get("doc_id"), place, collection)
        for piece in ([pieces] if isinstance(pieces, str | Mapping) else pieces)
    )
    known = ("id", "question", "answers", "answer", "doc_id", "evidence")
    return Question(
        id=str(record.get("id", place)),
        text=text,
        evidence=tuple(piece for piece in found if piece is not None),
        answers=(answers,) if isinstance(answers, str) else tuple(map(str, answers)),
        doc_id=record.get("doc_id"),
        metadata={key: value for key, value in record.items() if key not in known},
    )


def _evidence(
    piece: str | Mapping[str, Any], doc_id: str | None, place: str, collection: Mapping[str, Document]
) -> Evidence | None:
    record = {"text": piece} if isinstance(piece, str) else piece
    doc_id = record.get("doc_id", doc_id)
    if doc_id is not None and doc_id not in collection:
        example = next(iter(collection), "")
        raise InputError(
            f"{place}: document {doc_id!r} is not among the documents given; their ids are like {example!r}"
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
    """The first place of `quote` in `text`, exactly or up to white space and case; None if absent."""
    quote = quote.strip()
    if not quote:
        return None
    start = text.find(quote)
    if start >= 0:
        return Span(start, start + len(quote))
    pattern = r"\s+".join(map(re.escape, quote.split()))
    match = re.search(pattern, text, re.IGNORECASE)
    return Span(*match.span()) if match else None
