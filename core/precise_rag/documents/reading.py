"""Files in, documents out; every file is accounted for."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from precise_rag.checks import as_path, check_number
from precise_rag.documents.conversion import close_converter, convert
from precise_rag.documents.folders import FileReport, OnFile, Report, document_files, raise_error
from precise_rag.documents.kinds import kind_of
from precise_rag.documents.opening import MAX_FILE_BYTES, decode, read_at_most, read_bytes
from precise_rag.documents.places import places
from precise_rag.documents.records import from_record, json_documents, read_json_lines, table_documents
from precise_rag.errors import InputError, MissingExtra
from precise_rag.types import Document


def read_documents(
    *paths: str | Path,
    follow_links: bool = False,
    max_bytes: int = MAX_FILE_BYTES,
    on_error: Report | None = None,
    on_file: OnFile | None = None,
    skip: Callable[[Path, str], bool] | None = None,
) -> Iterator[Document]:
    """Read documents from files and folders.

    paths: files; folders, which are read at any depth; or patterns such as "docs/**/*.md". Read are text,
        Markdown, reStructuredText, CSV, JSON, JSON Lines and source code, and with the extra "documents"
        HTML, PDF, Word, PowerPoint, EPUB and notebooks. In a folder, hidden files, those that a .gitignore
        names and those of other kinds are skipped.
    follow_links: read symbolic links that lead out of a given folder. By default they are errors.
    max_bytes: largest size of a file, also after unpacking.
    on_error: is called with the error of each file, folder or line that cannot be read, and reading
        goes on with the next. By default the first error is raised.
    on_file: is called with what became of each file, a `FileReport`.
    skip: takes a file and its name within the folder; those for which it returns True are not opened.
    A file is one document; its id is its path within the given folder, or its file name; if several folders
    are given, their names come first. Each line of a .jsonl file is one document: an object with "text", or
    with `"sections": [{"paragraphs": […]}]` instead, and optionally "id" (default `<file>#<line>`). Its
    other fields become metadata. So is each row of a CSV file with a column "text" and each record of a
    JSON file with "text". The metadata "source" names the file. A file that is not UTF-8 is read in the
    encoding that fits it best. Pages and headings are in the metadata, see `place_of`.
    Returns an iterator over the documents, sorted by path within each folder.
    Raises InputError, naming the file and line, if a path does not exist, a folder has no file to read,
    a file cannot be read, is too large or is not text, a record is malformed or an id occurs twice.
    """
    check_number("max_bytes", max_bytes, least=1, whole=True)
    report, on_file = on_error or raise_error, on_file or (lambda report: None)
    given = [as_path("each path", path) for path in paths]
    several = sum(path.is_dir() for path in given) > 1
    seen: dict[str, str] = {}
    try:
        for path in given:
            inside = Path(os.path.realpath(path)) if path.is_dir() and not follow_links else None
            for file, name in document_files(
                path, follow_links=follow_links, on_error=report, on_file=on_file
            ):
                if several and path.is_dir():
                    name = f"{path.as_posix().removeprefix('./').rstrip('/')}/{name}"
                if skip is not None and skip(file, name):
                    continue
                yield from _read_file(file, name, max_bytes, inside, report, on_file, seen)
    finally:
        close_converter()


def read_standard_input(stream: object, max_bytes: int = MAX_FILE_BYTES) -> Document:
    """Read one document, with the id "stdin", from a stream of bytes."""
    data = read_at_most(stream, "standard input", max_bytes)
    text, _ = decode(data, Path("standard input"))
    return Document("stdin", text, {"source": "stdin", **places(text)})


def _read_file(
    file: Path,
    name: str,
    max_bytes: int,
    inside: Path | None,
    report: Report,
    on_file: OnFile,
    seen: dict[str, str],
) -> Iterator[Document]:
    """The documents of a file; what became of it is reported at the end."""
    found: list[str] = []
    errors: list[str] = []

    def failed(error: InputError) -> None:
        errors.append(str(error))
        report(error)

    remarks: list[str] = []
    try:
        for document, place in _documents(file, name, max_bytes, inside, failed, remarks):
            if document.id in seen:
                failed(
                    InputError(
                        f"document id {document.id!r} occurs twice: in {seen[document.id]} and in {place}; "
                        "give each document a unique id"
                    )
                )
                continue
            seen[document.id] = place
            found.append(document.id)
            yield document
    except MissingExtra as error:
        failed(InputError(str(error)))
    except InputError as error:
        failed(error)
    on_file(FileReport(str(file), "failed" if errors else "read", "; ".join(errors or remarks), tuple(found)))


def _documents(
    file: Path, name: str, max_bytes: int, inside: Path | None, report: Report, remarks: list[str]
) -> Iterator[tuple[Document, str]]:
    """The documents of a file, each with its place for error messages."""
    kind = kind_of(file.name)
    if kind == "records":
        for number, place, record in read_json_lines(
            file, max_bytes=max_bytes, on_error=report, inside=inside
        ):
            try:
                document = from_record(record, name, number, place)
            except InputError as error:
                report(error)
            else:
                yield document, place
        return
    data = read_bytes(file, max_bytes, inside)
    if kind == "converted":
        yield _converted(data, file, name, max_bytes), str(file)
        return
    text, encoding = decode(data, file)
    if not encoding.startswith("utf-8"):
        remarks.append(f"read as {encoding}")
    if kind == "json":
        found = json_documents(text, name, file)
    elif kind == "table":
        found = table_documents(text, name, file)
    else:
        headings = places(text) if kind == "markup" else {}
        found = iter((Document(name, text, {"source": name, **headings}),))
    for document in found:
        yield document, str(file)


def _converted(data: bytes, file: Path, name: str, max_bytes: int) -> Document:
    text, title, pages = convert(data, file.suffix.lower(), file, max_bytes)
    if not text.strip() and data:
        raise InputError(f"{file}: no text was found in it; scanned pages need text recognition first")
    metadata = {"source": name} | ({"title": title} if title else {})
    return Document(name, text, {**metadata, **places(text, pages)})
