"""HTML, PDF, office files, EPUB and notebooks as Markdown.

The converter runs in a process of its own: a file that makes it crash, hang or grow costs that file only.
"""

import atexit
import io
import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from precise_rag.documents.kinds import ARCHIVES, BINARY
from precise_rag.documents.opening import decode
from precise_rag.errors import InputError, MissingExtra

_SECONDS = 120
"""Most time for a file."""
MAX_SECONDS = 600.0
"""Default of the most time for all files that cannot be converted."""
_LONGEST_ESCAPE = 12
"""Bytes of a character in a reply."""
_REST_OF_REPLY = 2**26
"""Bytes of a reply besides its text."""
_BEGIN = """
import sys
from importlib import import_module, util
from importlib.machinery import PathFinder

own, *others = folders = sys.argv[1:]
sys.path += [folder for folder in folders if folder not in sys.path]
spec = PathFinder.find_spec("precise_rag", [own])
sys.modules["precise_rag"] = package = util.module_from_spec(spec)
spec.loader.exec_module(package)
import_module("precise_rag.documents.converter").main()
"""
"""The process has this package from where it is here, even if another one is installed."""
_MOST_ENTRIES = 50_000
"""Files in an archive."""


class Converted(NamedTuple):
    """A file as Markdown. title: empty if it has none. pages: where each page or slide begins.

    boxes: where the lines of a PDF are, see `precise_rag.pages`.
    """

    text: str
    title: str
    pages: tuple[int, ...]
    boxes: str = ""


class Patience:
    """The time that files which cannot be converted may still take, all together.

    seconds: the time at the beginning.
    """

    def __init__(self, seconds: float) -> None:
        self._most = self.left = seconds

    @contextmanager
    def spend(self, file: Path) -> Iterator[float]:
        """Yield the seconds that a file may take; if it fails, they count.

        Raises InputError if no time is left.
        """
        if self.left <= 0:
            raise InputError(
                f"{file}: was not read, because files that cannot be converted took {self._most:g} seconds "
                "before; read it alone, or raise the limit (max_seconds=, --max-seconds)"
            )
        start = time.monotonic()
        try:
            yield min(_SECONDS, self.left)
        except InputError:
            self.left -= time.monotonic() - start
            raise


def convert(data: bytes, file: Path, max_bytes: int, patience: Patience) -> Converted:
    """Return a file as Markdown.

    data: its bytes. max_bytes: largest size of an archive when unpacked, and of the text.
    Raises InputError if it cannot be converted, and MissingExtra if the converter is not installed.
    """
    suffix = file.suffix.lower()
    if suffix in ARCHIVES:
        _check_archive(data, file, max_bytes)
    elif suffix not in BINARY:
        data = decode(data, file)[0].encode("utf-8", "replace")
    with patience.spend(file) as seconds:
        reply = _CONVERTER.ask(data, {"suffix": suffix, "most": max_bytes}, seconds)
        if "missing" in reply:
            raise MissingExtra(
                f"{file}: {reply['missing']!r} is not installed where precise_rag is; "
                "run: pip install 'precise-rag[documents]'"
            )
        if "error" in reply:
            raise InputError(f"{file}: cannot be converted ({reply['error']})")
    if reply["text"] is None:
        raise InputError(
            f"{file}: holds more than {max_bytes:,} bytes of text; raise the limit (--max-bytes)"
        )
    return Converted(reply["text"], reply["title"], tuple(reply["pages"]), reply.get("boxes", ""))


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

    def ask(self, data: bytes, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the reply to one file, for which the process has some seconds."""
        with self._one_at_a_time:
            process = self._process
            if process is None or process.poll() is not None:
                process = self._process = _start()
            assert process.stdin is not None
            assert process.stdout is not None
            late = threading.Timer(seconds, process.kill)
            late.daemon = True
            late.start()
            longest = _LONGEST_ESCAPE * request["most"] + _REST_OF_REPLY
            try:
                process.stdin.write(json.dumps({**request, "bytes": len(data)}).encode() + b"\n" + data)
                process.stdin.flush()
                line = process.stdout.readline(longest)
            except OSError:
                line = b""
            except BaseException:
                process.kill()
                raise
            finally:
                late.cancel()
            if not line.endswith(b"\n"):
                process.kill()
                process.wait()
                return {"error": f"the converter ended, or took more than {seconds:.3g} seconds"}
            reply: dict[str, Any] = json.loads(line)
            return reply

    def close(self) -> None:
        """End the process."""
        with self._one_at_a_time:
            if self._process is not None:
                self._process.kill()
                self._process.communicate()
                self._process = None


def _start() -> "subprocess.Popen[bytes]":
    """Start the process: it imports installed packages, and nothing from the working folder.

    It knows the folders of the interpreter, but neither the working folder, nor `PYTHON*` variables, nor
    the user's own packages. After these come the folders from which this process has its own code.
    """
    folders = dict.fromkeys(map(str, (Path(__file__).parents[2], Path(numpy.__file__).parents[1])))
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _BEGIN, *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=os.path.abspath(os.sep),
    )
    atexit.register(process.kill)
    return process


_CONVERTER = _Converter()


def close_converter() -> None:
    """End the converter's process; the next file starts it again."""
    _CONVERTER.close()
