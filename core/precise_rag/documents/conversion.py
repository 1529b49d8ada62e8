"""HTML, PDF, Word, PowerPoint, EPUB and notebooks as Markdown.

The converter runs in a process of its own: a file that makes it crash, hang or grow costs that file only.
"""

import atexit
import importlib.util
import io
import json
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from precise_rag.documents.kinds import ARCHIVES
from precise_rag.documents.opening import decode
from precise_rag.errors import InputError, MissingExtra

_SECONDS = 120
"""Most time for a file."""
_MOST_ENTRIES = 50_000
"""Files in an archive."""


class Converted(NamedTuple):
    """A file as Markdown. title: empty if it has none. pages: where each page or slide begins."""

    text: str
    title: str
    pages: tuple[int, ...]


def convert(data: bytes, suffix: str, file: Path, max_bytes: int) -> Converted:
    """Return a file as Markdown.

    data: its bytes. suffix: its kind. max_bytes: largest size of an archive when unpacked, and of the text.
    Raises InputError if it cannot be converted, and MissingExtra if the converter is not installed.
    """
    if suffix in ARCHIVES:
        _check_archive(data, file, max_bytes)
    elif suffix != ".pdf":
        data = decode(data, file)[0].encode("utf-8", "replace")
    for module in ("markitdown", "mammoth", "pdfplumber", "pptx"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(
                f"{file}: {module!r} is not installed; run: pip install 'precise-rag[documents]'"
            )
    reply = _CONVERTER.ask(data, suffix)
    if "error" in reply:
        raise InputError(f"{file}: cannot be converted ({reply['error']})")
    if len(reply["text"]) > max_bytes:
        raise InputError(
            f"{file}: holds more than {max_bytes:,} bytes of text; raise the limit (--max-bytes)"
        )
    return Converted(reply["text"], reply["title"], tuple(reply["pages"]))


def _check_archive(data: bytes, file: Path, max_bytes: int) -> None:
    """Raises InputError for an archive that is damaged or unpacks to more than `max_bytes`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise InputError(f"{file}: is damaged, or another kind of file ({error})") from error
    size = sum(entry.file_size for entry in entries)
    if size > max_bytes or len(entries) > _MOST_ENTRIES:
        raise InputError(
            f"{file}: unpacks to {size:,} bytes in {len(entries):,} files; at most {max_bytes:,} bytes in "
            f"{_MOST_ENTRIES:,} files are read (max_bytes=, --max-bytes)"
        )


class _Converter:
    """The converter's process, started at the first file and again after one that ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._one_at_a_time = threading.Lock()

    def ask(self, data: bytes, suffix: str) -> dict[str, Any]:
        """Return the reply to one file."""
        with self._one_at_a_time:
            process = self._process
            if process is None or process.poll() is not None:
                process = self._process = self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            late = threading.Timer(_SECONDS, process.kill)
            late.daemon = True
            late.start()
            try:
                process.stdin.write(
                    json.dumps({"suffix": suffix, "bytes": len(data)}).encode() + b"\n" + data
                )
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = b""
            except BaseException:
                process.kill()
                raise
            finally:
                late.cancel()
            if not line:
                process.kill()
                process.wait()
                return {"error": f"the converter ended, or took more than {_SECONDS} seconds"}
            reply: dict[str, Any] = json.loads(line)
            return reply

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "precise_rag.documents.converter"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        atexit.register(process.kill)
        return process

    def close(self) -> None:
        """End the process."""
        with self._one_at_a_time:
            if self._process is not None:
                self._process.kill()
                self._process.communicate()
                self._process = None


_CONVERTER = _Converter()


def close_converter() -> None:
    """End the converter's process; the next file starts it again."""
    _CONVERTER.close()
