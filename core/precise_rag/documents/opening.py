"""The bytes and the text of regular files, within a limit of size."""

import gzip
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from precise_rag._extras import require
from precise_rag.errors import InputError, MissingExtra

MAX_FILE_BYTES = 256 * 2**20
"""Default limit of a file's size, before and after unpacking."""

_PIECE = 2**20
_SAMPLE = 200_000
"""Bytes whose encoding is guessed."""
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_LIKELY = ["cp1252", "cp1250", "cp1251", "cp1253", "cp1255", "cp1256", "shift_jis", "euc_jp", "euc_kr"]
_LIKELY += ["gb18030", "big5", "koi8_r"]


def read_text(file: Path, max_bytes: int = MAX_FILE_BYTES, inside: Path | None = None) -> str:
    """Read a UTF-8 text file, unpacking it if its name ends in .gz.

    max_bytes: largest size, also after unpacking.
    inside: a folder, without links in its path, in which the file must be. Default: anywhere.
    Raises InputError if the file cannot be read, is larger or is not UTF-8 text.
    """
    data = read_bytes(file, max_bytes, inside)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        kind = " but UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise InputError(
            f"{file}: not UTF-8 text{kind} ({error.reason} at byte {error.start}); convert it first"
        ) from error
    return _without_nul(text, file)


def decode(data: bytes, file: Path) -> tuple[str, str]:
    """Decode a text file of any encoding. Returns the text and the name of the encoding.

    A byte order mark counts first, then UTF-8, then what fits the letters best.
    Raises InputError if it is not text, and MissingExtra if guessing its encoding needs the extra.
    """
    marked = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    for name in [marked] if marked else ["utf-8"]:
        try:
            return _without_nul(data.decode(name), file), name
        except UnicodeDecodeError as error:
            if marked:
                raise InputError(f"{file}: not {name} text ({error.reason} at byte {error.start})") from error
    if b"\0" in data:
        raise InputError(f"{file}: looks like a binary file (it contains NUL bytes); expected text")
    best = _matches(data[:_SAMPLE], file).best()
    if best is None or len(data) < 2:
        raise InputError(f"{file}: not UTF-8 text, nor text in an encoding that is known; convert it first")
    text = data.decode(best.encoding, "replace")
    western = data.decode(_LIKELY[0], "replace")  # the same letters are in several encodings
    return (western, _LIKELY[0]) if western == text else (text, best.encoding)


def _matches(sample: bytes, file: Path) -> Any:
    """The encodings that a text may have, best first. Raises MissingExtra, with the name of the file."""
    try:
        normalizer = require("charset_normalizer", extra="documents")
    except MissingExtra as error:
        raise MissingExtra(f"{file}: not UTF-8 text, and {error}") from error
    return normalizer.from_bytes(sample, cp_isolation=_LIKELY)


def _without_nul(text: str, file: Path) -> str:
    if "\0" in text:
        raise InputError(f"{file}: looks like a binary file (it contains NUL bytes); expected UTF-8 text")
    return text


def read_bytes(file: Path, max_bytes: int = MAX_FILE_BYTES, inside: Path | None = None) -> bytes:
    """Read a regular file, unpacking it if its name ends in .gz. It takes the arguments of `read_text`.

    Raises InputError if the file cannot be read, is larger, or is not the one that was found.
    """
    return _read(file, lambda opened: read_at_most(opened, file, max_bytes), inside)


def read_beginning(file: Path, n_bytes: int, inside: Path | None = None) -> bytes:
    """Read the first bytes of a regular file of any size. Else it is the same as `read_bytes`."""
    return _read(file, lambda opened: bytes(opened.read(n_bytes)), inside)


def _read(file: Path, read: Callable[[Any], bytes], inside: Path | None) -> bytes:
    try:
        _check_regular(file, os.stat(file))
        with open(file, "rb", opener=_without_waiting) as opened:
            status = os.fstat(opened.fileno())
            _check_regular(file, status)
            if inside is not None:
                _check_opened(file, status, inside)
            unpacked = gzip.GzipFile(fileobj=opened) if file.suffix == ".gz" else opened
            return read(unpacked)
    except InputError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{file}: not a complete gzip file ({error})") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {reason(error, file)}") from error


def read_at_most(opened: Any, file: Path | str, max_bytes: int) -> bytes:
    """Read all of a stream. Raises InputError if it holds more than `max_bytes`."""
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


def reason(error: OSError | ValueError, path: Path) -> str:
    """Why a path cannot be read, in words."""
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"is a link to {os.path.realpath(path)}, which does not exist"
    return f"cannot be read ({getattr(error, 'strerror', None) or error})"


def _without_waiting(name: str, flags: int) -> int:
    """Open a file without waiting: a pipe without a writer would never open."""
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
