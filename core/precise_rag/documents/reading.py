"""Files in, documents out; every file is accounted for."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from precise_rag.checks import as_path, check_number
from precise_rag.documents.conversion import MAX_SECONDS, Patience, close_converter, convert
from precise_rag.documents.folders import FileReport, OnFile, Report, document_files, raise_error
from precise_rag.documents.kinds import Kind, kind_of
from precise_rag.documents.manual import is_manual, manual_text
from precise_rag.documents.opening import MAX_FILE_BYTES, decode, read_at_most, read_beginning, read_bytes
from precise_rag.documents.places import places
from precise_rag.documents.records import from_record, json_documents, names_record, read_json_lines
from precise_rag.documents.tables import table_documents
from precise_rag.errors import InputError, MissingExtra
from precise_rag.types import Document

_FIRST_BYTES = 4096
"""In which a manual page says that it is one."""


class _How(NamedTuple):
    """How files are read; see `read_documents`. inside: the folder in which they must be, if any."""

    max_bytes: int
    patience: Patience
    own_ids: bool
    report: Report
    on_file: OnFile
    inside: Path | None = None


class _NotRead(Exception):
    """A file is of another kind than its name says, and is skipped."""


def read_documents(
    *paths: str | Path,
    follow_links: bool = False,
    max_bytes: int = MAX_FILE_BYTES,
    max_seconds: float = MAX_SECONDS,
    own_ids: bool = False,
    on_error: Report | None = None,
    on_file: OnFile | None = None,
    skip: Callable[[Path, str], bool] | None = None,
    exclude: Sequence[str] = (),
) -> Iterator[Document]:
    """Read documents from files and folders.

    paths: files; folders, which are read at any depth; or patterns such as "docs/**/*.md". Read are text,
        Markdown, reStructuredText, CSV, JSON, JSON Lines, manual pages and source code, and with the extra
        "documents" HTML, PDF, Word, OpenDocument, Rich Text, spreadsheets, PowerPoint, EPUB and notebooks. In
        a folder, hidden files, those that a .gitignore names and those of other kinds are skipped.
    follow_links: read symbolic links that lead out of a given folder. By default they are errors.
    max_bytes: largest size of a file, also after unpacking.
    max_seconds: most time that all files together may take that cannot be converted, and at most two minutes
        for one. After it, files that need the converter are errors, too.
    own_ids: give a record that has an "id" this id alone. By default its id is `<file>#<id>`, so that no
        record can take the place of another file.
    on_error: is called with the error of each file, folder or line that cannot be read, and reading
        goes on with the next. By default the first error is raised.
    on_file: is called with what became of each file, a `FileReport`.
    skip: takes a file and its name within the folder; those for which it returns True are not opened.
    exclude: patterns, as in a .gitignore file, of files and folders in the given folders to skip.
    A file is one document; its id is its path within the given folder, or its file name; if several folders
    are given, their names come first. Each line of a .jsonl file is one document: an object with "text", or
    with `"sections": [{"paragraphs": […]}]` instead, and optionally "id" (default: the number of the line).
    So is each row of a CSV file with a column "text" and each record of a JSON file with "text". The other
    fields become metadata. The metadata "source" names the file; "pages", "headings" and "boxes" are for
    `place_of`. Fields of a record with these names, or with others of ours, are in the metadata "record", a
    mapping.
    A file that is not UTF-8 is read in the encoding that fits it best (extra "documents"). A file without
    content is a document without text.
    Returns an iterator over the documents, sorted by path within each folder.
    Raises InputError, naming the file and line, if a path does not exist or a folder has no file to read.
    It also raises InputError for a file that is too large or is not text, a malformed record, and an id that
    occurs twice.
    """
    check_number("max_bytes", max_bytes, least=1, whole=True)
    check_number("max_seconds", max_seconds, least=0)
    report, on_file = on_error or raise_error, on_file or (lambda report: None)
    how = _How(max_bytes, Patience(max_seconds), own_ids, report, on_file)
    given = [as_path("each path", path) for path in paths]
    several = sum(map(os.path.isdir, given)) > 1
    seen: dict[str, str] = {}
    try:
        for path in given:
            inside = Path(os.path.realpath(path)) if os.path.isdir(path) and not follow_links else None
            for file, name in document_files(
                path, follow_links=follow_links, on_error=report, on_file=on_file, exclude=exclude
            ):
                if several and os.path.isdir(path):
                    name = f"{path.as_posix().removeprefix('./').rstrip('/')}/{name}"
                if skip is not None and skip(file, name):
                    continue
                yield from _read_file(file, name, how._replace(inside=inside), seen)
    finally:
        close_converter()


def read_standard_input(stream: object, max_bytes: int = MAX_FILE_BYTES) -> Document:
    """Read one document, with the id "stdin", from a stream of bytes."""
    data = read_at_most(stream, "standard input", max_bytes)
    text, _ = decode(data, Path("standard input"))
    return Document("stdin", text, {"source": "stdin", **places(text)})


def _read_file(file: Path, name: str, how: _How, seen: dict[str, str]) -> Iterator[Document]:
    """The documents of a file; its outcome is reported at the end."""
    ids: list[str] = []
    errors: list[str] = []

    def failed(error: InputError) -> None:
        errors.append(str(error))
        how.report(error)

    remarks: list[str] = []
    try:
        for document, place in _documents(file, name, how._replace(report=failed), remarks):
            if document.id in seen:
                failed(
                    InputError(
                        f"document id {document.id!r} occurs twice: in {seen[document.id]} and in {place}; "
                        "give each document a unique id"
                    )
                )
                continue
            seen[document.id] = place
            ids.append(document.id)
            yield document
    except _NotRead as why:
        how.on_file(FileReport(str(file), "skipped", str(why)))
        return
    except MissingExtra as error:
        failed(InputError(str(error)))
    except InputError as error:
        failed(error)
    status: Literal["read", "failed"] = "failed" if errors else "read"
    how.on_file(FileReport(str(file), status, "; ".join(errors or remarks), tuple(ids)))


def _documents(file: Path, name: str, how: _How, remarks: list[str]) -> Iterator[tuple[Document, str]]:
    """The documents of a file, each with its place for error messages."""
    if names_record(name):
        raise InputError(f"{file}: its name could be the id of another file's record; rename it, without #")
    kind = kind_of(file.name)
    if kind == "records":
        yield from _lines(file, name, how)
        return
    if kind == "manual":  # an archive.7z has such a name, too, and may be large
        beginning = read_beginning(file, _FIRST_BYTES, how.inside)
        if beginning and not is_manual(beginning.decode("latin-1")):
            raise _NotRead("named like a manual page, which it is not")
    data = read_bytes(file, how.max_bytes, how.inside)
    if not data:
        yield Document(name, "", {"source": name}), str(file)
        return
    if kind == "converted":
        yield _converted(data, file, name, how), str(file)
        return
    text, encoding = decode(data, file)
    if not encoding.startswith("utf-8"):
        remarks.append(f"read as {encoding}")
    for document in _of_text(text, kind, file, name, how):
        yield document, str(file)


def _of_text(text: str, kind: Kind | None, file: Path, name: str, how: _How) -> Iterator[Document]:
    """The documents of a text of this kind."""
    if kind == "json":
        return json_documents(text, name, file, how.own_ids)
    if kind == "table":
        return table_documents(text, name, file, how.own_ids)
    title = ""
    if kind == "manual":
        text, title = manual_text(text)
    headings = places(text) if kind in ("markup", "manual") else {}
    return iter((Document(name, text, _described(name, title, headings)),))


def _lines(file: Path, name: str, how: _How) -> Iterator[tuple[Document, str]]:
    """The documents of the lines of a file; a bad line does not stop the others."""
    for number, place, record in read_json_lines(
        file, max_bytes=how.max_bytes, on_error=how.report, inside=how.inside
    ):
        try:
            document = from_record(record, name, number, place, how.own_ids)
        except InputError as error:
            how.report(error)
        else:
            yield document, place


def _converted(data: bytes, file: Path, name: str, how: _How) -> Document:
    text, title, pages, boxes = convert(data, file, how.max_bytes, how.patience)
    if not text.strip():
        scanned = "; scanned pages need text recognition first" if file.suffix.lower() == ".pdf" else ""
        raise InputError(f"{file}: no text was found in it{scanned}")
    return Document(name, text, _described(name, title, places(text, pages, boxes)))


def _described(name: str, title: str, where: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a file: its name, its title if it has one, and its places."""
    return {"source": name} | ({"title": title} if title else {}) | dict(where)
