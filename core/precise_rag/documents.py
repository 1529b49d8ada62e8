"""Reading documents from .txt, .md, .jsonl and .jsonl.gz files."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from precise_rag.errors import InputError
from precise_rag.types import Document

SUFFIXES = (".txt", ".md", ".jsonl", ".jsonl.gz")
"""Endings of the files that can be read."""

_RECORD_FIELDS = ("id", "text", "sections", "sentences")
"""Fields of a .jsonl record that do not become metadata."""


def read_documents(*paths: str | Path) -> Iterator[Document]:
    """Read documents from files and folders.

    paths: .txt, .md, .jsonl or .jsonl.gz files, or folders that contain such files at any depth.
    A text file is one document; its id is its path within the given folder, or its file name. Each
    line of a .jsonl file is one document: an object with "text", or with
    `"sections": [{"paragraphs": […]}]` instead, and optionally "id" (default `<file>#<line>`). Its
    other fields become metadata.
    Returns an iterator over the documents, sorted by path within each folder.
    Raises InputError, naming the file and line, if a path does not exist, a folder has no such file,
    a file is not UTF-8 text, a record is malformed or an id occurs twice.
    """
    seen: dict[str, str] = {}
    for path in map(Path, paths):
        for file, name in _files(path):
            for document, place in _read(file, name):
                if document.id in seen:
                    raise InputError(
                        f"document id {document.id!r} occurs twice: in {seen[document.id]} and in {place}; "
                        "give each document a unique id"
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
        raise InputError(f"{path}: nothing to read; expected files ending in {', '.join(SUFFIXES)}")
    return [(file, file.relative_to(path).as_posix()) for file in files]


def _read(file: Path, name: str) -> Iterator[tuple[Document, str]]:
    if name.endswith((".txt", ".md")):
        yield Document(name, read_text(file), {"source": name}), str(file)
        return
    for number, place, record in read_json_lines(file):
        yield _from_record(record, f"{name}#{number}", place), place


def read_json_lines(file: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Read the records of a .jsonl or .jsonl.gz file.

    Returns an iterator over (line number, file and line for error messages, record).
    Raises InputError if a line is not a JSON object.
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
    """Read a UTF-8 text file, unpacking it if its name ends in .gz.

    Raises InputError if the file is not UTF-8 text.
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
        raise InputError(f"{file}: looks like a binary file (it contains NUL bytes); expected UTF-8 text")
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
