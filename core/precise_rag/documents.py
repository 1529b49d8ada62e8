"""Reading documents from .txt, .md, .jsonl and .jsonl.gz files."""

import gzip
import json
import os
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from precise_rag.checks import as_path, check_number
from precise_rag.errors import InputError
from precise_rag.types import Document

SUFFIXES = (".txt", ".md", ".jsonl", ".jsonl.gz")
"""Endings of the files that can be read."""

MAX_FILE_BYTES = 256 * 2**20
"""Default limit of a file's size, before and after unpacking."""

_RECORD_FIELDS = ("id", "text", "sections", "sentences")
"""Fields of a .jsonl record that do not become metadata."""
_MOST_LEVELS = 100
"""Objects and lists within each other in a .jsonl record."""
_MOST_DIGITS = 1_000
"""Digits of a whole number in a .jsonl record."""
_PIECE = 2**20

Report = Callable[[InputError], object]
"""Takes the error of a file or line that is left out."""


def read_documents(
    *paths: str | Path,
    follow_links: bool = False,
    max_bytes: int = MAX_FILE_BYTES,
    on_error: Report | None = None,
) -> Iterator[Document]:
    """Read documents from files and folders.

    paths: .txt, .md, .jsonl or .jsonl.gz files, or folders that contain such files at any depth.
    follow_links: read symbolic links that lead out of a given folder. By default they are errors.
    max_bytes: largest size of a file, also after unpacking.
    on_error: is called with the error of each file, folder or line that cannot be read, and reading
        goes on with the next. By default the first error is raised.
    A text file is one document; its id is its path within the given folder, or its file name. Each
    line of a .jsonl file is one document: an object with "text", or with
    `"sections": [{"paragraphs": […]}]` instead, and optionally "id" (default `<file>#<line>`). Its
    other fields become metadata.
    Returns an iterator over the documents, sorted by path within each folder.
    Raises InputError, naming the file and line, if a path does not exist, a folder has no such file,
    a file cannot be read, is too large or is not UTF-8 text, a record is malformed or an id occurs twice.
    """
    check_number("max_bytes", max_bytes, least=1, whole=True)
    report = on_error or _raise
    seen: dict[str, str] = {}
    for path in [as_path("each path", path) for path in paths]:
        inside = Path(os.path.realpath(path)) if path.is_dir() and not follow_links else None
        for file, name in document_files(path, follow_links=follow_links, on_error=report):
            for document, place in _read(file, name, max_bytes, report, inside):
                if document.id not in seen:
                    seen[document.id] = place
                    yield document
                    continue
                report(
                    InputError(
                        f"document id {document.id!r} occurs twice: in {seen[document.id]} and in {place}; "
                        "give each document a unique id"
                    )
                )


def document_files(
    path: Path, *, follow_links: bool = False, on_error: Report | None = None
) -> Iterator[tuple[Path, str]]:
    """Find the files to read at a path: itself, or those in it if it is a folder.

    Returns an iterator over (file, name within the folder), sorted by path.
    Raises InputError, or calls `on_error`, as `read_documents`; a link that is given itself is followed.
    """
    report = on_error or _raise
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError) and not path.is_symlink()
        report(InputError(f"{path}: {'no such file or folder' if missing else _reason(error, path)}"))
        return
    if not stat.S_ISDIR(mode):
        if path.name.endswith(SUFFIXES):
            yield path, path.name
        else:
            report(InputError(f"{path}: cannot read this kind of file; expected {', '.join(SUFFIXES)}"))
        return
    found = 0

    def count(error: InputError) -> None:
        nonlocal found
        found += 1
        report(error)

    for file in _walk(path, follow_links, count):
        found += 1
        yield file, file.relative_to(path).as_posix()
    if not found:
        report(InputError(f"{path}: nothing to read; expected files ending in {', '.join(SUFFIXES)}"))


def _walk(root: Path, follow_links: bool, report: Report) -> Iterator[Path]:
    """The files in a folder that can be read, by path; each folder is entered once."""
    inside = Path(os.path.realpath(root))
    entered: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            status = os.stat(path)
        except OSError as error:
            if path.name.endswith(SUFFIXES) or not path.is_symlink():
                report(InputError(f"{path}: {_reason(error, path)}"))
            continue
        try:
            if stat.S_ISDIR(status.st_mode):
                place = (status.st_dev, status.st_ino)
                if place not in entered and _may_enter(path, root, inside, follow_links):
                    entered.add(place)
                    waiting.extend(path / name for name in sorted(os.listdir(path), reverse=True))
            elif path.name.endswith(SUFFIXES):
                _check_link(path, inside, follow_links)
                yield path
        except InputError as error:
            report(error)
        except OSError as error:
            report(InputError(f"{path}: {_reason(error, path)}"))


def _may_enter(path: Path, root: Path, inside: Path, follow_links: bool) -> bool:
    """Whether to read a folder here: one that a link leads to is read at its own place if that is inside."""
    if path == root or not path.is_symlink():
        return True
    _check_link(path, inside, follow_links)
    return not _is_within(path, inside)


def _check_link(path: Path, inside: Path, follow_links: bool) -> None:
    """Raises InputError if a path leads out of the given folder by a link that is not to be followed."""
    if path.is_symlink() and not follow_links and not _is_within(path, inside):
        raise InputError(
            f"{path}: is a link to {os.path.realpath(path)}, outside the given folder; "
            "to read it, pass follow_links=True (--follow-links)"
        )


def _is_within(path: Path, inside: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(inside)


def _read(
    file: Path, name: str, max_bytes: int, report: Report, inside: Path | None
) -> Iterator[tuple[Document, str]]:
    """The documents of a file, each with its place for error messages."""
    if not name.endswith((".txt", ".md")):
        for number, place, record in read_json_lines(
            file, max_bytes=max_bytes, on_error=report, inside=inside
        ):
            try:
                document = _from_record(record, f"{name}#{number}", place)
            except InputError as error:
                report(error)
            else:
                yield document, place
        return
    try:
        text = read_text(file, max_bytes, inside)
    except InputError as error:
        report(error)
    else:
        yield Document(name, text, {"source": name}), str(file)


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
    report = on_error or _raise
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
            record = _parse(line, place)
        except InputError as error:
            report(error)
        else:
            yield number, place, record


def read_text(file: Path, max_bytes: int = MAX_FILE_BYTES, inside: Path | None = None) -> str:
    """Read a UTF-8 text file, unpacking it if its name ends in .gz.

    max_bytes: largest size, also after unpacking.
    inside: a folder, without links in its path, in which the file must be. Default: anywhere.
    Raises InputError if the file cannot be read, is larger or is not UTF-8 text.
    """
    try:
        _check_regular(file, os.stat(file))
        with open(file, "rb", opener=_without_waiting) as opened:
            status = os.fstat(opened.fileno())
            _check_regular(file, status)
            if inside is not None:
                _check_opened(file, status, inside)
            unpacked = gzip.GzipFile(fileobj=opened) if file.suffix == ".gz" else opened
            data = _read_at_most(unpacked, file, max_bytes)
    except InputError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{file}: not a complete gzip file ({error})") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {_reason(error, file)}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        kind = " but UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise InputError(
            f"{file}: not UTF-8 text{kind} ({error.reason} at byte {error.start}); convert it first"
        ) from error
    if "\0" in text:
        raise InputError(f"{file}: looks like a binary file (it contains NUL bytes); expected UTF-8 text")
    return text


def _without_waiting(name: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to would never open otherwise."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _check_regular(file: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, a device or a socket"
        raise InputError(f"{file}: is {kind}; expected a file")


def _check_opened(file: Path, status: os.stat_result, inside: Path) -> None:
    """Raise InputError unless the file that was opened is in the folder: a link may have come since."""
    place = os.path.realpath(file)
    if not Path(place).is_relative_to(inside) or not os.path.samestat(os.lstat(place), status):
        raise InputError(
            f"{file}: leads out of the given folder, or was replaced while it was opened; "
            "to read links, pass follow_links=True (--follow-links)"
        )


def _read_at_most(opened: Any, file: Path, max_bytes: int) -> bytes:
    pieces, size = [], 0
    while piece := opened.read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            raise InputError(
                f"{file}: holds more than {max_bytes:,} bytes of text; split it, "
                "or raise the limit (max_bytes=, --max-bytes)"
            )
    return b"".join(pieces)


def _reason(error: OSError | ValueError, path: Path) -> str:
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"is a link to {os.path.realpath(path)}, which does not exist"
    return f"cannot be read ({getattr(error, 'strerror', None) or error})"


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_to_object, parse_int=_to_int)
    except RecursionError as error:
        raise InputError(f"{place}: nested more than {_MOST_LEVELS} levels deep") from error
    except ValueError as error:
        raise InputError(f"{place}: not valid JSON ({error})") from error
    if not isinstance(record, dict):
        raise InputError(f"{place}: expected a JSON object, got {type(record).__name__}")
    if line.count("[") + line.count("{") > _MOST_LEVELS and _is_deep(record):
        raise InputError(f"{place}: nested more than {_MOST_LEVELS} levels deep")
    return record


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


def _is_deep(record: dict[str, Any]) -> bool:
    level: list[Any] = [record]
    for _ in range(_MOST_LEVELS):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _from_record(record: dict[str, Any], default_id: str, place: str) -> Document:
    identifier = record.get("id", default_id)
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | float) or identifier == "":
        raise InputError(f'{place}: "id" must be a filled string or a number, got {identifier!r:.100}')
    metadata = {key: value for key, value in record.items() if key not in _RECORD_FIELDS}
    return Document(str(identifier), _record_text(record, place), metadata)


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


def _raise(error: InputError) -> NoReturn:
    raise error
