"""Questions and documents in the shapes of other tools, known by their content.

BEIR        a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv
ragas       records with "user_input", "reference_contexts" and "reference"
LlamaIndex  an EmbeddingQAFinetuneDataset ("queries", "corpus", "relevant_docs"), or a LabelledRagDataset
            ("examples" with "query", "reference_contexts" and "reference_answer")
LangSmith   exported examples: records with "inputs" and "outputs", or columns that begin so

Each becomes records of `precise_rag.evaluation.datasets`, and the texts that hold their evidence. These are
the documents if no others are given, and quotations of the documents otherwise.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from precise_rag.checks import shown
from precise_rag.documents import read_json_lines, read_text
from precise_rag.documents.records import parse_json
from precise_rag.errors import InputError
from precise_rag.types import Document

_QUESTION_KEYS = ("question", "query", "user_input", "input", "prompt", "messages")
_ANSWER_KEYS = ("answer", "answers", "reference_answer", "reference", "output", "ground_truth", "expected")
_CONTEXT_KEYS = (
    "reference_contexts",
    "contexts",
    "context",
    "documents",
    "source_documents",
    "ground_truths",
)
_TEXT_KEYS = ("page_content", "text", "content")

_EXPECTED = (
    'a record with "question" (see the guide on evaluation), a ragas record with "user_input", a LlamaIndex '
    'dataset with "queries" or "examples", a LangSmith example with "inputs", or a BEIR folder'
)


class QuestionFile(NamedTuple):
    """The records of questions, each with its place for error messages, and the texts that they name.

    texts: the documents of a shape that has its own, by id; empty for records of our own shape.
    """

    records: list[tuple[str, dict[str, Any]]]
    texts: dict[str, Document]


def read_question_file(path: Path) -> QuestionFile:
    """Read the questions of a file or of a BEIR folder, in any of the shapes above or in our own.

    In records of other shapes, "evidence" is a list of {"doc_id"} of `texts`.
    Raises InputError, with the shapes that are known, for anything else.
    """
    if path.is_dir():
        return _beir(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix == ".json":
        return _whole(parse_json(read_text(path), str(path)), path)
    if path.suffix == ".csv":
        return _of_records(_rows(path), path)
    return _of_records([(place, record) for _, place, record in read_json_lines(path)], path)


def _of_records(records: Sequence[tuple[str, dict[str, Any]]], path: Path) -> QuestionFile:
    """The questions of records that are all of one shape, which the first one shows."""
    first = records[0][1] if records else {"question": ""}
    if "question" in first:
        return QuestionFile(list(records), {})
    read = _example if _inputs(first) else _quoted if {"user_input", "query"} & first.keys() else None
    if read is None:
        raise InputError(f"{records[0][0]}: has the keys {', '.join(first) or 'none'}; expected {_EXPECTED}")
    texts: dict[str, Document] = {}
    keys: dict[str, str] = {}
    questions = []
    for place, record in records:
        question, answers, contexts = read(record)
        if not question:
            raise InputError(f"{place}: has no question; expected one of {', '.join(_QUESTION_KEYS)}")
        evidence = []
        for context in contexts:
            key = keys.setdefault(context, f"{path.name}#{len(texts) + 1}")
            texts[key] = Document(key, context, {"source": path.name})
            evidence.append({"doc_id": key})
        known = {"id": record["id"]} if record.get("id") not in (None, "") else {}
        questions.append((place, {**known, "question": question, "answers": answers, "evidence": evidence}))
    return QuestionFile(questions, texts)


def _quoted(record: Mapping[str, Any]) -> tuple[str, list[str], list[str]]:
    """Question, answers and contexts of a record of ragas, or of an example of LlamaIndex."""
    return (
        _first_text(record, ("user_input", "query")),
        _texts(next((record[key] for key in _ANSWER_KEYS if record.get(key)), ())),
        _texts(next((record[key] for key in _CONTEXT_KEYS if record.get(key)), ())),
    )


def _example(record: Mapping[str, Any]) -> tuple[str, list[str], list[str]]:
    """The same of an example of LangSmith, whose contexts may be among its inputs, outputs or metadata."""
    inputs, outputs = _inputs(record), _part(record, ("outputs", "output", "reference_outputs"))
    question = _first_text(inputs, _QUESTION_KEYS) or _only_text(inputs)
    answers = next((outputs[key] for key in _ANSWER_KEYS if outputs.get(key)), None)
    sides = (outputs, _part(record, ("metadata",)), inputs)
    contexts = next((side[key] for side in sides for key in _CONTEXT_KEYS if side.get(key)), ())
    return question, _texts(answers if answers is not None else _only_text(outputs)), _texts(contexts)


def _inputs(record: Mapping[str, Any]) -> dict[str, Any]:
    return _part(record, ("inputs", "input"))


def _part(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A mapping in a record: a value, JSON in a cell, or the columns that begin with its name."""
    for name in names:
        value = _unpacked(record.get(name), "{")
        if isinstance(value, Mapping):
            return dict(value)
        columns = {
            key[len(name) + 1 :]: value
            for key, value in record.items()
            if key.startswith((f"{name}.", f"{name}_")) and value
        }
        if columns:
            return columns
    return {}


def _first_text(record: Mapping[str, Any], keys: Sequence[str]) -> str:
    values = (record.get(key) for key in keys)
    for value in values:
        if isinstance(value, list) and value:  # messages, of which the last one asks
            value = value[-1].get("content") if isinstance(value[-1], Mapping) else value[-1]
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _only_text(record: Mapping[str, Any]) -> str:
    values = [value for value in record.values() if isinstance(value, str) and value.strip()]
    return values[0] if len(values) == 1 else ""


def _texts(value: object) -> list[str]:
    """The texts in a value: one, several, JSON of several in a cell, or documents of a framework."""
    value = _unpacked(value, "[")
    values = value if isinstance(value, list | tuple) else [value]
    texts = (_first_text(one, _TEXT_KEYS) if isinstance(one, Mapping) else one for one in values)
    return [one for one in texts if isinstance(one, str) and one.strip()]


def _unpacked(value: Any, begins: str) -> Any:
    """The value of JSON in a cell of a table; a text that only looks like it stays one."""
    if isinstance(value, str) and value.lstrip().startswith(begins):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    except csv.Error as error:
        raise InputError(f"{path}: not a table of questions ({error})") from error
    return [
        (f"{path}, row {number}", {str(key): value for key, value in row.items() if value})
        for number, row in enumerate(rows, start=2)
    ]


def _whole(value: Any, path: Path) -> QuestionFile:
    """The questions of one JSON value: a dataset of LlamaIndex, or a list of records."""
    if isinstance(value, dict) and {"queries", "corpus", "relevant_docs"} <= value.keys():
        for name in ("queries", "corpus", "relevant_docs"):
            if not isinstance(value[name], dict):
                raise InputError(f"{path}: {name!r} must be an object, by id, got {shown(value[name])}")
        known = {str(key) for key in value["corpus"]}
        for key, ids in value["relevant_docs"].items():
            if not isinstance(ids, list):
                raise InputError(
                    f"{path}: 'relevant_docs' of {key!r} must be a list of ids, got {shown(ids)}"
                )
            if unknown := {str(one) for one in ids} - known:
                raise InputError(f"{path}: {min(unknown)!r} of 'relevant_docs' is not in 'corpus'")
        texts = {str(key): Document(str(key), str(text)) for key, text in value["corpus"].items()}
        records = [
            (
                f"{path}, {key!r}",
                {
                    "id": key,
                    "question": question,
                    "evidence": [{"doc_id": str(one)} for one in value["relevant_docs"].get(key, ())],
                },
            )
            for key, question in value["queries"].items()
        ]
        return QuestionFile(records, texts)
    listed = value.get("examples", value.get("data")) if isinstance(value, dict) else value
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise InputError(f"{path}: not a dataset of questions; expected {_EXPECTED}")
    return _of_records([(f"{path}, example {n}", one) for n, one in enumerate(listed, start=1)], path)


def _beir(folder: Path) -> QuestionFile:
    corpus, queries = folder / "corpus.jsonl", folder / "queries.jsonl"
    judged = sorted(folder.glob("qrels/*.tsv"))
    if not (corpus.is_file() and queries.is_file() and judged):
        raise InputError(
            f"{folder}: not a BEIR folder, which has corpus.jsonl, queries.jsonl and qrels/*.tsv; "
            f"expected {_EXPECTED}"
        )
    texts = {}
    for _, place, record in read_json_lines(corpus):
        key, title = _id(record, place), str(record.get("title") or "")
        texts[key] = Document(key, str(record.get("text") or ""), {"title": title} if title else {})
    file = next((one for one in judged if one.stem == "test"), judged[0])
    relevant: dict[str, list[str]] = {}
    for place, query, document, score in _judgements(file):
        if document not in texts:
            raise InputError(f"{place}: {document!r} is not in {corpus}")
        if score > 0:
            relevant.setdefault(query, []).append(document)
    records = [
        (
            place,
            {
                "id": key,
                "question": record.get("text"),
                "evidence": [{"doc_id": document} for document in relevant[key]],
            },
        )
        for _, place, record in read_json_lines(queries)
        if (key := _id(record, place)) in relevant
    ]
    return QuestionFile(records, texts)


def _id(record: Mapping[str, Any], place: str) -> str:
    if "_id" not in record:
        raise InputError(f'{place}: a record of BEIR needs an "_id"')
    return str(record["_id"])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _judgements(file: Path) -> Iterator[tuple[str, str, str, float]]:
    """Query, document and score of each line, with its place; a head is left out."""
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        cells = line.split("\t")
        place = f"{file}, line {number}"
        is_head = number == 1 and len(cells) > 2 and not _is_number(cells[-1])
        if not line.strip() or is_head:
            continue
        if len(cells) == 4:  # as TREC has it, with a second column that nobody reads
            cells = [cells[0], cells[2], cells[3]]
        if len(cells) != 3:
            raise InputError(
                f"{place}: expected query, document and score with tabs between, got {line!r:.100}"
            )
        try:
            yield place, cells[0], cells[1], float(cells[2])
        except ValueError as error:
            raise InputError(f"{place}: the score must be a number, got {cells[2]!r}") from error
