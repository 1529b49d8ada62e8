"""Files and folders to documents: .txt, .md, .jsonl, .jsonl.gz."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from precise_rag.errors import InputError
from precise_rag.types import Document

SUFFIXES = (".txt", ".md", ".jsonl", ".jsonl.gz")
"""The file names that are read."""

_RECORD_FIELDS = ("id", "text", "sections", "sentences")
"""Fields of a .jsonl record that become the document itself; the others become its metadata."""


def read_documents(*paths: str | Path) -> Iterator[Document]:
    """The documents of the given files and, recursively, folders, in sorted order.

    The id of a text file is its path as seen from the folder given (its name, if the file itself
    was given). A .jsonl record is `{"id", "text"}`, or has `"sections": [{"paragraphs": […]}]` in
    place of a text; without an id it gets `<file>#<line>`. Text is kept as it is in the file.

    Raises InputError, naming the file and line, for a path that does not exist, a folder with
    nothing to read, a file that is not UTF-8 text, a malformed record and an id seen twice.
    """
    seen: dict[str, str] = {}
    for path in map(Path, paths):
        for file, name in _files(path):
            for document, place in _read(file, name):
                if document.id in seen:
                    raise InputError(
                        f"document id {document.id!r} occurs twice: in {seen[document.id]} and in {place}; "
                        "give each document an id of its own"
                    )
                seen[document.id] = place
                yield document


def _files(path: Path) -> list[tuple[Path, str]]:
    if path.is_file():
        if not path.name.endswith(SUFFIXES):
            raise InputError(f"{path}: cannot read this kind of file; expected {', '.join(SUFFIXES)}")
        return [(path, path.name)]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name.endswith(SUFFIXES))
    if not files:
        raise InputError(f"{path}: nothing to read here; expected files ending in {', '.join(SUFFIXES)}")
    return [(file, file.relative_to(path).as_posix()) for file in files]


def _read(file: Path, name: str) -> Iterator[tuple[Document, str]]:
    if name.endswith((".txt", ".md")):
        yield Document(name, read_text(file), {"source": name}), str(file)
        return
    for number, place, record in read_json_lines(file):
        yield _from_record(record, f"{name}#{number}", place), place


def read_json_lines(file: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each record of a .jsonl(.gz) file with its line number and its place in words, for messages.

    Raises InputError for a line that is not a JSON object.
    """
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{place}: not valid JSON ({error})") from error
        if not isinstance(record, dict):
            raise InputError(f"{place}: expected a JSON object, got {type(record).__name__}")
        yield number, place, record


def read_text(file: Path) -> str:
    """The UTF-8 text of a file, unpacked if its name ends in .gz.

    Raises InputError if it is something else.
    """
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{file}: not a complete gzip file ({error})") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file}: not UTF-8 text ({error.reason} at byte {error.start}); convert it first"
        ) from error
    if "\0" in text:
        raise InputError(f"{file}: looks like a binary file (it holds NUL bytes); give text")
    return text


def _from_record(record: dict[str, Any], default_id: str, place: str) -> Document:
    identifier = record.get("id", default_id)
    metadata = {key: value for key, value in record.items() if key not in _RECORD_FIELDS}
    return Document(str(identifier), _record_text(record, place), metadata)


def _record_text(record: dict[str, Any], place: str) -> str:
    text = record.get("text")
    if isinstance(text, str):
        return text
    try:
        return "\n\n".join(paragraph for section in record["sections"] for paragraph in section["paragraphs"])
    except (KeyError, TypeError) as error:
        raise InputError(
            f'{place}: the record needs a string "text", or "sections" that each have "paragraphs"'
        ) from error
