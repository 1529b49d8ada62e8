"""The files that an index was made of: one that has not changed since is not opened again."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from precise_rag.documents import FileReport
from precise_rag.index.storage.manifest import FILES, FILES_PART, MANIFEST

_MOST_BYTES = 2**28
_READING = 2
"""Another number when the same file gives other documents; 2: ids of records are below their file."""


class KnownFiles:
    """The sizes and times of the files of an index, with the ids of their documents.

    folder: of the index. options: whatever else decides what is read; other options make every file new.
    The record holds for one state of the index: if anything else has written it, every file is new.
    """

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self._folder, self._options = folder, {**options, "reading": _READING}
        self._now: dict[str, list[Any]] = {}
        self.ids: set[str] = set()
        self.summary: dict[str, Any] = {}
        self._files: dict[str, Any] = {}
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            file = folder / FILES
            if file.is_file() and file.stat().st_size <= _MOST_BYTES:
                record = json.loads(file.read_bytes())
                if record["index"] == _state(folder) and record["options"] == self._options:
                    self._files, self.summary = dict(record["files"]), dict(record["summary"])

    def is_unchanged(self, file: Path, name: str) -> bool:
        """Whether a file is as it was; if so, its documents are in `ids`."""
        try:
            status = os.stat(file)
        except OSError:
            return False
        now = [name, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        self._now[str(file)] = now
        known = self._files.get(str(file))
        if not isinstance(known, list) or known[:-1] != now:
            return False
        self.ids.update(known[-1])
        return True

    def save(self, reports: Iterable[FileReport], summary: Mapping[str, Any]) -> None:
        """Write the record; if it cannot be written, the next run reads every file again."""
        read = {report.path: list(report.documents) for report in reports if report.status == "read"}
        files = {path: [*now, read[path]] for path, now in self._now.items() if path in read}
        kept = {path: self._files[path] for path in self._now if path in self._files and path not in files}
        record = {
            "index": _state(self._folder),
            "options": self._options,
            "summary": dict(summary),
            "files": kept | files,
        }
        part = self._folder / FILES_PART
        with suppress(OSError):
            part.unlink(missing_ok=True)  # never write through a link that was put there
            with part.open("x", encoding="ascii") as opened:
                json.dump(record, opened)
            part.replace(self._folder / FILES)


def _state(folder: Path) -> str:
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
