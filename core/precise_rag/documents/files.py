"""The files of a folder, their kinds, and their bytes and text."""

import codecs
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from precise_rag._data import by_word, packaged_toml
from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.redaction import visible_line

_log = logging.getLogger(__name__)
MOST_FILE_BYTES, _BEGINNING = 256 * 2**20, 4_096
"""Bytes of a file, at most, and of the beginning that tells whether one without an ending is text."""
_DECLARED = re.compile(
    rb"(?i)<\?xml[^>]{0,200}?encoding=[\"']([\w.:-]{1,40})|<meta[^>]{0,200}?charset=[\"']?([\w.:-]{1,40})"
    rb"|\\usepackage\[([\w-]{1,20})\]\{inputenc\}"
)
_NAMED = 9
"""Names of what is not read, in a warning, at most."""
_OTHERS = "files of kinds that cannot be read"
_LEFT_OUT = "left out, hidden or filled by tools (to read one, give its own path)"
Kind = Literal["text", "records", "json", "table", "mail", "converted"]
"""text: read as it is. records: JSON Lines. json: one JSON value. table: CSV. mail: one or several messages.
converted: needs a converter."""
Report = Callable[[InputError], object]
"""Takes the error of a file or line that is left out."""
_DATA = packaged_toml("documents/kinds.toml")
_KINDS, _NAMES, _WIDER = (by_word(_DATA[name]) for name in ("endings", "names", "wider"))
"""Kinds by the endings and by the names of files, and the encodings to read for those that files declare."""
_FOLDERS = {key: names.split() for key, names in _DATA["folders"].items()}


def kind_of(file: Path) -> Kind | None:
    """Return the kind of a file by its name, or by how it begins if that has no ending; None for no kind."""
    kind = _NAMES.get(file.name.lower()) or _KINDS.get(file.suffix.lower())
    return kind or ("text" if not file.suffix and _begins_with_text(file) else None)


def _begins_with_text(file: Path) -> bool:
    """Whether a file begins with UTF-8 text that is not blank."""
    with suppress(OSError, UnicodeDecodeError):
        if file.is_file():
            with file.open("rb") as opened:
                text = codecs.getincrementaldecoder("utf-8")().decode(opened.read(_BEGINNING))
            return "\0" not in text and bool(text.strip())
    return False


def document_files(path: Path, exclude: Sequence[str], report: Report) -> Iterator[tuple[Path, str]]:
    """Find the files to read at a path: a file, or the files in a folder at any depth.

    exclude: see `read_documents`. report: takes the error if there is nothing to read.
    Returns an iterator over (file, name within the folder), sorted by path.
    """
    if os.path.isdir(path):
        found, others, left_out = False, Counter[str](), Counter[str]()
        for file, name in _files_below(path, exclude, report, left_out):
            if kind_of(file):
                found = True
                yield file, name
            else:
                others[file.suffix or file.name] += 1
        for what, names in ((_OTHERS, others), (_LEFT_OUT, left_out)):
            named = [f"{visible_line(name)} ({n})" for name, n in names.most_common(_NAMED)]
            named += ["…"] * (len(names) > _NAMED)
            if names:
                _log.warning("%s: %s: %s", path, what, ", ".join(named))
        if not found:
            report(InputError(f"{path}: there is nothing to read in this folder"))
    elif not os.path.lexists(path):
        report(InputError(f"{path}: no such file or folder"))
    elif kind_of(path):
        yield path, path.name
    else:
        report(InputError(f"{path}: cannot read this kind of file ({path.suffix or 'no ending'})"))


def _files_below(
    root: Path, exclude: Sequence[str], report: Report, left_out: Counter[str]
) -> Iterator[tuple[Path, str]]:
    """Yield the files below a folder with their names in it, by path; count in `left_out` what it may miss.

    Left out are hidden files, folders that tools fill, what `exclude` names and saved indexes. Links out of
    the folder are errors.
    """
    inside = os.path.realpath(root)
    waiting = [root]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(root).as_posix()
        if path != root:
            if any(fnmatch(path.name, pattern) or fnmatch(name, pattern) for pattern in exclude):
                continue
            by_mark = any(any(path.glob(mark)) for mark in _FOLDERS["marks"])
            if by_mark or path.name.startswith(".") or path.name in _FOLDERS["names"]:
                if os.path.isdir(path) or kind_of(path):
                    left_out.update({path.name}.difference(_FOLDERS["unsaid"]))
                continue
            target = os.path.realpath(path)
            if path.is_symlink() and not Path(target).is_relative_to(inside):
                report(InputError(f"{path}: is a link to {target}, outside the given folder"))
                continue
        try:
            if not path.is_dir():
                yield path, name
            elif path == root or not path.is_symlink():
                waiting.extend(sorted(path.iterdir(), reverse=True))
        except OSError as error:
            report(InputError(f"{path}: {_reason(error, path)}"))


def read_bytes(file: Path) -> bytes:
    """Read a regular file. Raises InputError if it cannot be read or is larger than `MOST_FILE_BYTES`."""
    try:
        if file.exists() and not file.is_file():
            raise InputError(f"{file}: is a pipe, a device or a socket; expected a file")
        with file.open("rb") as opened:
            data = opened.read(MOST_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file}: {_reason(error, file)}") from error
    if len(data) > MOST_FILE_BYTES:
        raise InputError(f"{file}: holds more than {MOST_FILE_BYTES:,} bytes; split it")
    return data


def decode(data: bytes, file: Path) -> str:
    """Decode a text: as its byte order mark says, as UTF-8, as it declares, or as its letters fit best.

    Damaged UTF-8 is decoded as such, with U+FFFD in the damaged places.
    Raises InputError if it is not text, or if guessing its encoding needs the extra "documents".
    """
    is_marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = data.decode("utf-16" if is_marked else "iso2022_jp" if b"\x1b$B" in data else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", "replace")
        if 2 * text.count("\ufffd") > len(text) - len(text.encode("ascii", "ignore")):
            text = _decode_as_declared(data) or _decode_as_guessed(data, file)
    if text.count("\0") > len(text) / 1_000 + (file.suffix.lower() in (".html", ".htm")):  # a stray one
        raise InputError(f"{file}: looks like a binary file (it contains NUL bytes); expected text")
    return text.replace("\0", "")


def decode_as(data: bytes, encoding: str) -> str:
    """Decode a text. Raises LookupError for encodings of names and source code: one takes quadratic time."""
    if codecs.lookup(encoding).name in ("idna", "punycode", "raw-unicode-escape", "unicode-escape"):
        raise LookupError(encoding)
    return data.decode(encoding)


def _decode_as_declared(data: bytes) -> str:
    """The text in the encoding that the head of an XML, HTML or TeX file names; "" without one that fits."""
    if declared := _DECLARED.search(data[:1024]):
        name = next(filter(None, declared.groups())).decode("ascii").lower()
        with suppress(LookupError, UnicodeError):
            return decode_as(data, _WIDER.get(name, name))
    return ""


def _decode_as_guessed(data: bytes, file: Path) -> str:
    try:
        chardet = require("chardet", extra="documents")
        era = chardet.EncodingEra.MODERN_WEB
        return data.decode(chardet.detect(data, encoding_era=era, max_bytes=len(data))["encoding"] or "")
    except ImportError as error:
        raise InputError(f"{file}: not UTF-8 text, and {error}") from error
    except (LookupError, UnicodeDecodeError):
        raise InputError(f"{file}: not text in an encoding that is known; convert it to UTF-8") from None


def _reason(error: OSError, path: Path) -> str:
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"is a link to {os.path.realpath(path)}, which does not exist"
    return f"cannot be read ({error.strerror})"
