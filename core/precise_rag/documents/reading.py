"""Files in, documents out."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

from precise_rag.checks import as_path, items_of, shown
from precise_rag.documents.conversion import Converter
from precise_rag.documents.files import Report, decode, document_files, kind_of, read_bytes
from precise_rag.documents.records import (
    each_document,
    from_record,
    json_lines_documents,
    json_records,
    mail_documents,
    table_records,
    unreadable,
)
from precise_rag.errors import InputError
from precise_rag.facts import PAGES_KEY
from precise_rag.structure.marks import unescaped
from precise_rag.types import Document

_OBJECTS = re.compile(r"\A\s*+\{[^\n]*+(?:(?<=\})|(?<=\}\r))\n\s*+\{")
"""An object on a line and the beginning of another one, which no JSON value has."""
_CAPTION = re.compile(r"(?m)^(?:\S[^\n]*\n)?((?:\d+:)?\d+:\d\d?)[.,]\d{1,3}[ \t]+-->[^\n]*\n")
"""The number and times of a caption; what is said goes on in the next one."""
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]++([^<>\n]+)>")
_TAG = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
_REMARK = re.compile(r"(?<=\n\n)(?:NOTE|STYLE|REGION)\b[^\n]*(?:\n[^\n]+)*")


def read_documents(
    *paths: str | Path, exclude: Sequence[str] = (), on_error: Report | None = None
) -> Iterator[Document]:
    """Read documents from files and folders.

    paths: files, or folders, which are read at any depth. Read are text, Markdown, reStructuredText, source
        code, CSV, JSON, JSON Lines and mail (.eml, .mbox), and with the extra "documents" HTML, PDF, Word
        (.docx), PowerPoint (.pptx), EPUB and notebooks. In a folder, hidden files are skipped, those of other
        kinds, and folders that tools fill (node_modules, __pycache__, virtual environments, caches) unless
        they are a path; a warning of the log "precise_rag" names them. Links that lead out of it are errors.
    exclude: patterns of names of files and folders, or of their paths in the given folder, such as "*.log".
    on_error: is called with the error of each file or folder that cannot be read, and with the first one of
        the lines, records, pages or messages of a file; the others are read. By default the first is raised.
    A file is one document; its id is its path within the given folder, or its file name; if several paths
    are given, its whole path. One that lies at two of them is read once. Each line of a .jsonl file is one
    document: an object with "text" and optionally "id" (default: the number of the line).
    So is each row of a CSV file with a column "text", each record of a JSON list with "text", and each
    message of an .mbox file. Their ids are `<file>#<id>`, so that no record can take the place of another
    file. The other fields become metadata. Lines and lists without any "text", such as a log, are one
    document; so is any other CSV file, a table in Markdown. The metadata "source" names the file, "title"
    its title, and "precise_pages" has the offset at which each page or slide begins; of captions (.srt,
    .vtt), each offset with its time. Fields of a record with a name of ours are in the metadata "record".
    A file that is not UTF-8 is read in the encoding that fits it best (extra "documents"). A file without
    content is a document without text.
    Returns an iterator, which reads as it goes, over the documents, sorted by path within each folder.
    It raises InputError, naming the file and line, for a path that does not exist, a folder without files to
    read, a file that is larger than 256 MiB, is not text, takes a converter more than a minute or becomes
    more than 32 MiB of text in it, a malformed record, and an id that occurs twice.
    """
    if not callable(report := on_error or _raise):
        raise InputError(f"on_error must be a function, got {shown(report)}")
    exclude = tuple(items_of("exclude", exclude, str))
    roots = [as_path("each path", path) for path in paths]
    seen: dict[str, Path] = {}
    first: dict[str, int] = {}
    wrong: list[InputError] = []  # of a file: the first error, as often as there are errors
    note = (lambda error: wrong.append(wrong[0] if wrong else error)) if on_error else _raise
    with closing(Converter()) as converter:
        for root, path in enumerate(roots):
            for file, name in document_files(path, exclude, report):
                if first.setdefault(os.path.realpath(file), root) != root:
                    continue
                name = file.as_posix() if len(roots) > 1 else name
                try:
                    documents = _documents(file, name, converter, note)
                except Exception as error:
                    report(unreadable(error, str(file)))
                    continue
                for document in documents:
                    if document.id in seen:
                        twice = f"{document.id!r} occurs twice: in {seen[document.id]} and in {file}"
                        note(InputError(f"document id {twice}; give each document a unique id"))
                    else:
                        seen[document.id] = file
                        yield document
                if wrong:
                    more = f" (the first of {len(wrong):,} errors in this file)" * (len(wrong) > 1)
                    report(InputError(f"{wrong[0]}{more}"))
                    wrong.clear()


def _documents(file: Path, name: str, converter: Converter, report: Report) -> Iterator[Document]:
    kind = kind_of(file)
    data = read_bytes(file)
    if not data:
        return iter([Document(name, "", {"source": name})])
    if kind == "converted":
        text, metadata = converter.convert(data, file)
        unread = [f"{part} cannot be read" for part in metadata.pop("unread", ())]
        if not text.strip():
            scanned = ["scanned pages need text recognition first"] * (file.suffix.lower() == ".pdf")
            raise InputError("; ".join([f"{file}: no text was found in it", *(unread or scanned)[:1]]))
        for part in unread:
            report(InputError(f"{file}: {part}"))
    elif kind == "mail":
        return mail_documents(data, name, file, converter, report)
    else:
        text, metadata = decode(data, file), {}
        if file.suffix.lower() in (".srt", ".vtt"):
            text, metadata = _said(text)
    kind = "records" if kind == "json" and _OBJECTS.match(text) else kind
    if kind == "records" and (lines := json_lines_documents(text, name, file, report)):
        return lines
    records = json_records(text, file) if kind == "json" else None
    if kind == "table":
        records, text = table_records(text, file)
    if records is None:
        return iter([Document(name, text, {"source": name, **metadata})])
    parts = enumerate(records, start=1)
    return each_document(parts, lambda n, one, at: from_record(n, one, at, name), report, f"{file}, record")


def _said(text: str) -> tuple[str, dict[str, Any]]:
    """Return what captions say, and the metadata PAGES_KEY: where each begins, and when.

    A line that the caption before has, too, is said once. Who speaks is named where another one begins.
    """
    _, *parts = _CAPTION.split(text.replace("\r\n", "\n"))
    said, captions, line, speaker = "", [], "", ""
    for time, words in zip(parts[::2], parts[1::2], strict=True):
        captions.append([len(said), ":".join(part.zfill(2) for part in f"00:{time}".split(":")[-3:])])
        for spoken in _REMARK.sub("", words).split("\n"):
            voice = _VOICE.search(spoken)
            named = f"{voice[1]}: " if voice and voice[1] != speaker else ""
            speaker = voice[1] if voice else speaker
            spoken = unescaped(_TAG.sub("", spoken)).strip()
            if spoken not in ("", line):
                said += f"{named}{spoken}\n"
                line = spoken
    return (said, {PAGES_KEY: captions}) if said else (text, {})


def _raise(error: InputError) -> NoReturn:
    raise error
