"""Records of JSON Lines, JSON and CSV files."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from precise_rag.documents.folders import Report, raise_error
from precise_rag.documents.opening import MAX_FILE_BYTES, read_text
from precise_rag.errors import InputError
from precise_rag.types import Document

_RECORD_FIELDS = ("id", "text", "sections", "sentences")
"""Fields of a record that do not become metadata."""
_MOST_LEVELS = 100
"""Objects and lists within each other in a record."""
_MOST_DIGITS = 1_000
"""Digits of a whole number in a record."""
_MOST_COLUMNS = 10_000


def read_json_lines(
    file: Path,
    *,
    max_bytes: int = MAX_FILE_BYTES,
    on_error: Report | None = None,
    inside: Path | None = None,
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Read the records of a .jsonl or .jsonl.gz file.

    max_bytes, on_error: as for `read_documents`. inside: as for `read_text`.
    Returns an iterator over (line number, file and line for error messages, record).
    Raises InputError if the file cannot be read or a line is not a JSON object.
    """
    report = on_error or raise_error
    try:
        text = read_text(file, max_bytes, inside)
    except InputError as error:
        report(error)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            record = parse_json(line, place)
            if not isinstance(record, dict):
                raise InputError(f"{place}: expected a JSON object, got {type(record).__name__}")
        except InputError as error:
            report(error)
        else:
            yield number, place, record


def json_documents(text: str, name: str, file: Path) -> Iterator[Document]:
    """The documents of a JSON file.

    A list of records, or one record, is read as the lines of a .jsonl file are. Any other value is one
    document with a line for each entry, such as `price.adults: 12`.
    """
    value = parse_json(text, str(file))
    records = value if isinstance(value, list) else [value]
    if records and all(isinstance(one, dict) and {"text", "sections"} & one.keys() for one in records):
        for number, record in enumerate(records, start=1):
            yield from_record(record, name, number if isinstance(value, list) else None, str(file))
        return
    parts = ("\n".join(_lines(one, "")) for one in records)
    yield Document(name, "\n\n".join(part for part in parts if part), {"source": name})


def table_documents(text: str, name: str, file: Path) -> Iterator[Document]:
    """The documents of a CSV file, whose first row has the names of the columns.

    With a column "text" each row is a record, as the lines of a .jsonl file are. Otherwise the file is one
    document with a paragraph for each row, such as `city: Oslo; country: Norway`.
    """
    header = text.partition("\n")[0]
    delimiter = max(",;\t|", key=header.count)
    try:
        names, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except (csv.Error, ValueError) as error:
        if not text.strip():
            yield Document(name, "", {"source": name})
            return
        raise InputError(f"{file}: cannot be read as a table ({error})") from error
    if len(names) > _MOST_COLUMNS:
        raise InputError(f"{file}: has {len(names):,} columns; at most {_MOST_COLUMNS:,} are read")
    if "text" in names:
        for number, row in enumerate(rows, start=1):
            record = {key: value for key, value in zip(names, row, strict=False) if value}
            if record:
                yield from_record({"text": "", **record}, name, number, f"{file}, row {number}")
        return
    paragraphs = (
        "; ".join(f"{key}: {value}" if key else value for key, value in _cells(names, row) if value.strip())
        for row in rows
    )
    yield Document(name, "\n\n".join(filter(None, paragraphs)) or "; ".join(names), {"source": name})


def _cells(names: list[str], row: list[str]) -> Iterator[tuple[str, str]]:
    for number, value in enumerate(row):
        yield (names[number].strip() if number < len(names) else ""), " ".join(value.split())


def _lines(value: Any, path: str) -> Iterator[str]:
    """A line for each value that is no object or list, with the names that lead to it."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _lines(child, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for child in value:
            yield from _lines(child, path)
    elif value not in (None, ""):
        yield f"{path}: {value}" if path else str(value)


def parse_json(text: str, place: str) -> Any:
    """Parse JSON. Raises InputError if it is malformed or nested too deeply, or repeats a key."""
    try:
        value = json.loads(text, object_pairs_hook=_to_object, parse_int=_to_int)
    except RecursionError as error:
        raise InputError(f"{place}: nested more than {_MOST_LEVELS} levels deep") from error
    except ValueError as error:
        raise InputError(f"{place}: not valid JSON ({error})") from error
    if text.count("[") + text.count("{") > _MOST_LEVELS and _is_deep(value):
        raise InputError(f"{place}: nested more than {_MOST_LEVELS} levels deep")
    return value


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:100]!r} occurs twice")
    return record


def _to_int(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits; at most {_MOST_DIGITS:,} are read")
    return int(digits)


def _is_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            child
            for one in level
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def from_record(record: dict[str, Any], name: str, number: int | None, place: str) -> Document:
    """Return the document of a record; the fields that are not its id or text become metadata.

    name: of its file, which is also the metadata "source" unless the record has one.
    number: of the record in the file, for records without an id; None if it is the only one.
    place: file and line for error messages.
    """
    identifier = record.get("id", name if number is None else f"{name}#{number}")
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | float) or identifier == "":
        raise InputError(f'{place}: "id" must be a filled string or a number, got {identifier!r:.100}')
    metadata = {key: value for key, value in record.items() if key not in _RECORD_FIELDS}
    return Document(str(identifier), _record_text(record, place), {"source": name, **metadata})


def _record_text(record: dict[str, Any], place: str) -> str:
    text = record.get("text")
    if isinstance(text, str):
        return text
    try:
        return "\n\n".join(
            paragraph for section in record["sections"] for paragraph in _listed(section["paragraphs"])
        )
    except (KeyError, TypeError) as error:
        raise InputError(
            f'{place}: the record needs a string "text", or "sections" that each have "paragraphs"'
        ) from error


def _listed(paragraphs: object) -> list[str]:
    if not isinstance(paragraphs, list):
        raise TypeError
    return paragraphs
