"""HTML, PDF, Word, PowerPoint, EPUB and notebooks as Markdown.

The converter runs in a process of its own: a file that makes it crash or hang costs that file only.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from precise_rag._data import packaged_toml
from precise_rag.documents.files import decode
from precise_rag.errors import InputError
from precise_rag.facts import PAGES_KEY

SECONDS = 60
"""Most time for a file."""
MOST_TEXT_BYTES = 32 * 2**20
"""Longest text of a file, as the converter writes it: an archive of some kilobytes can hold gigabytes."""
_OLE, _LOCKED = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "EncryptedPackage".encode("utf-16-le")
"""How files of old Office programs begin, and new ones with a password; the name of a part of the latter."""
_PLAINLY = packaged_toml("documents/errors.toml")


class Converter:
    """The converter's process, started at the first file and again after one that ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def convert(self, data: bytes, file: Path) -> tuple[str, dict[str, Any]]:
        """Return a file as Markdown, and "title", PAGES_KEY and a list of what is "unread" if it has them.

        Raises InputError if it cannot be converted or the extra is missing.
        """
        suffix = file.suffix.lower()
        if suffix in (".html", ".htm", ".ipynb"):
            data = decode(data, file).encode("utf-8", "replace")
        reply = self._ask(data, {"suffix": suffix, "bytes": len(data), "seconds": SECONDS}, file)
        if "error" in reply:
            why = next((_PLAINLY[said] for said in _PLAINLY if said in reply["error"]), reply["error"])
            raise InputError(f"{file}: cannot be converted ({why})")
        names = {"title": "title", "pages": PAGES_KEY, "unread": "unread"}
        return reply["text"], {key: reply[name] for name, key in names.items() if reply[name]}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, data: bytes, request: dict[str, Any], file: Path) -> dict[str, Any]:
        if data.startswith(_OLE):
            return {"error": _PLAINLY["Incorrect password" if _LOCKED in data else "an OLE file"]}
        process = self._process = self._process or _start(file)
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n" + data)
            process.stdin.flush()
            line = process.stdout.readline(MOST_TEXT_BYTES + 1)
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            if len(line) > MOST_TEXT_BYTES:
                return {"error": f"its text has more than {MOST_TEXT_BYTES:,} bytes; split it"}
            return {"error": f"the converter ended, or took more than {SECONDS} seconds"}
        return dict(json.loads(line))


def _start(file: Path) -> "subprocess.Popen[bytes]":
    """Start the process. It imports nothing from the working folder (-P), where the files may be."""
    for name in ("markitdown", "pypdfium2"):
        if find_spec(name) is None:
            raise InputError(f"{file}: {name!r} is not installed; run: pip install 'precise-rag[documents]'")
    return subprocess.Popen(
        [sys.executable, "-P", Path(__file__).with_name("conversion_process.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
