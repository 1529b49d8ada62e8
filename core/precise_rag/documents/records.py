"""Records of JSON Lines and JSON files, and what becomes of the fields of a record."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from precise_rag.checks import without_repeats
from precise_rag.documents.folders import Report, raise_error
from precise_rag.documents.kinds import kind_of
from precise_rag.documents.opening import MAX_FILE_BYTES, read_text
from precise_rag.errors import InputError
from precise_rag.types import Document

_RECORD_FIELDS = ("id", "text", "sections", "sentences")
"""Fields of a record that do not become metadata."""
_OWN_FIELDS = ("source", "pages", "boxes", "headings", "record", "relevance_score")
"""Metadata that say where a text is from and how it is ranked: they are ours, never a record's …"""
_OWN_BEGINNINGS = ("precise", "$")
"""… and so is metadata with such a name."""
_WITH_RECORDS = ("records", "json", "table")
_MOST_LEVELS = 100
"""Objects and lists within each other in a record."""
_MOST_DIGITS = 1_000
"""Digits of a whole number in a record."""


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


def json_documents(text: str, name: str, file: Path, own_ids: bool = False) -> Iterator[Document]:
    """The documents of a JSON file.

    A list of records, or one record, is read as the lines of a .jsonl file are. Any other value is one
    document with a line for each entry, such as `price.adults: 12`.
    """
    value = parse_json(text, str(file))
    records = value if isinstance(value, list) else [value]
    if records and all(isinstance(one, dict) and {"text", "sections"} & one.keys() for one in records):
        for number, record in enumerate(records, start=1):
            place = number if isinstance(value, list) else None
            yield from_record(record, name, place, str(file), own_ids)
        return
    parts = ("\n".join(_lines(one, "")) for one in records)
    yield Document(name, "\n\n".join(part for part in parts if part), {"source": name})


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
        value = json.loads(text, object_pairs_hook=without_repeats, parse_int=_to_int)
    except RecursionError as error:
        raise InputError(f"{place}: nested more than {_MOST_LEVELS} levels deep") from error
    except ValueError as error:
        raise InputError(f"{place}: not valid JSON ({error})") from error
    if text.count("[") + text.count("{") > _MOST_LEVELS and _is_deep(value):
        raise InputError(f"{place}: nested more than {_MOST_LEVELS} levels deep")
    return value


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


def from_record(
    record: dict[str, Any], name: str, number: int | None, place: str, own_ids: bool = False
) -> Document:
    """Return the document of a record; the fields that are not its id or text become metadata.

    name: of its file, which is the metadata "source". The id is below it: `<name>#<id>`.
    number: of the record in the file, for records without an id; None if it is the only one.
    place: file and line for error messages. own_ids: take the id of the record alone.
    A field with the name of one of ours is kept in the metadata "record", a mapping.
    """
    identifier = record.get("id", number)
    if "id" in record and not _is_id(identifier):
        raise InputError(f'{place}: "id" must be a filled string or a number, got {identifier!r:.100}')
    whole = name if identifier is None else f"{name}#{identifier}"
    metadata = {key: value for key, value in record.items() if key not in _RECORD_FIELDS}
    claimed = {key: metadata.pop(key) for key in tuple(metadata) if _is_own(key)}
    return Document(
        str(identifier) if own_ids and "id" in record else whole,
        _record_text(record, place),
        {"source": name, **metadata, **({"record": claimed} if claimed else {})},
    )


def _is_id(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


def _is_own(field: str) -> bool:
    return field in _OWN_FIELDS or field.startswith(_OWN_BEGINNINGS)


def names_record(name: str) -> bool:
    """Whether the name of a file could be the id of a record of another file."""
    ends = (at for at, mark in enumerate(name) if mark == "#")
    return any(kind_of(name[:end].rpartition("/")[2]) in _WITH_RECORDS for end in ends)


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
