"""A saved index: a manifest that names the folders of its segments, replaced in one step.

    path/manifest.json         format, kind, encoder, settings; of each segment the folder, its checksum and
                               what is deleted
    path/data-…/segment.json   vocabulary; shape or size and sha256 of each file
    path/data-…/*.npy          one array per column, memory-mapped on load
    path/data-…/documents.jsonl
    path/precise-rag.lock      locked while a process writes, which precise-rag.lock.holder names

A data folder never changes: a save writes those of new segments, and keeps those of the others. New folders
are complete and on disk before the manifest that names them replaces the old one. So a crash at any moment
leaves the old index or the new one. One process at a time writes; any number reads.
"""

import logging
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from precise_rag.checks import as_path, check_number
from precise_rag.errors import (
    IndexChangedError,
    IndexFormatError,
    IndexWriteError,
    InputError,
    PreciseRagError,
)
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.rows.segments import Part, Segment, Stored
from precise_rag.index.storage.files import (
    is_index_file,
    write_array,
    write_documents,
)
from precise_rag.index.storage.lock import LOCK_FILE, LOCK_FILES, LONGEST_WAIT, WAIT, hold_folder
from precise_rag.index.storage.manifest import (
    DATA_NAME,
    FORMAT,
    MANIFEST,
    MANIFEST_PART,
    SEGMENT,
    VERSION,
    has_index,
    parse_manifest,
    read_manifest,
    version_of,
    write_manifest,
)

_log = logging.getLogger(__name__)
_FILES = {MANIFEST, MANIFEST_PART, *LOCK_FILES}


@contextmanager
def locked(path: str | Path, timeout: float = WAIT) -> Iterator[list[Path]]:
    """Hold the folder of an index against other writers; it is made if it is not there.

    Yields the data folders in it.
    Raises InputError if it holds other files, IndexLockedError if another writer holds it for
    `timeout` seconds, and IndexWriteError if it cannot be made.
    """
    path = as_path("path", path)
    check_number("timeout", timeout, least=0, most=LONGEST_WAIT)
    with _write_errors(path):
        if not (path / LOCK_FILE).is_file():  # where it is, another writer may be clearing up
            _check_folder(path)
        path.mkdir(parents=True, exist_ok=True)
    with hold_folder(path, timeout):
        with _write_errors(path):
            folders = _check_folder(path)
        yield folders


def write_index(
    path: str | Path,
    manifest: dict[str, Any],
    parts: Sequence[tuple[Part, Columns]],
    folders: Sequence[Path],
    *,
    known: set[str] | None = None,
) -> None:
    """Save into a folder that is `locked`, replacing an index that is already there.

    parts: the parts of the index, each with the arrays to save that do not go by rows.
    folders: the data folders in it.
    known: versions of which the folder must still have one, see `version_of`; the new one is added.
        Default: any.
    Raises InputError if a document cannot be saved as it is; IndexChangedError if another writer has
    replaced the index; IndexWriteError.
    """
    path = as_path("path", path)
    with _write_errors(path):
        present = _present_manifest(path)
        if known is not None and present is not None and version_of(present) not in known:
            raise IndexChangedError(
                f"{path} was saved by another writer since this index was loaded; "
                "load it again, repeat the change and save, or save into another folder"
            )
        in_use = {(entry["data"], entry["sha256"]) for entry in present["segments"]} if present else set()
        with _written(path) as new:
            stored = [_stored(path, part.segment, extras, in_use, new) for part, extras in parts]
            entries = [_entry(place, part) for place, (part, _) in zip(stored, parts, strict=True)]
            manifest = {"format": FORMAT, "version": VERSION, **manifest, "segments": entries}
            version = write_manifest(path / MANIFEST_PART, manifest)
            if known is not None:
                known.add(version)  # before it is replaced, so that an interruption cannot come between
            os.replace(path / MANIFEST_PART, path / MANIFEST)
        for place, (part, _) in zip(stored, parts, strict=True):
            part.segment.stored = place
        try:
            _flush_folder(path)
        except OSError as error:
            _log.warning("%s was saved, but the disk did not confirm it: %s", path, error)
        named = {place.data for place in stored}
        for folder in folders:
            if folder.name not in named:
                _remove(folder)


@contextmanager
def _written(path: Path) -> Iterator[list[Path]]:
    """Context for new data folders, which are removed if an exception leaves it."""
    new: list[Path] = []
    try:
        yield new
    except BaseException:
        for folder in new:
            _remove(folder)
        with suppress(OSError):
            (path / MANIFEST_PART).unlink(missing_ok=True)
        raise


def _stored(
    path: Path, segment: Segment, extras: Columns, in_use: set[tuple[str, str]], new: list[Path]
) -> Stored:
    """Where a segment is saved in `path`; it is written if it is not there yet."""
    place = segment.stored
    if place is not None and segment.is_stored(path) and place[1:] in in_use:
        return place
    return _write_segment(path, segment, extras, new)


def _write_segment(path: Path, segment: Segment, extras: Columns, new: list[Path]) -> Stored:
    """Write a segment into a new data folder, which is added to `new` before anything is written."""
    folder = path / f"data-{uuid.uuid4().hex}"
    new.append(folder)
    folder.mkdir()
    collection = segment.collection
    files = {
        "columns": {n: write_array(folder, n, column) for n, column in collection.columns.items()},
        "extras": {n: write_array(folder, n, array) for n, array in extras.items()},
        "offsets": write_array(folder, "offsets", collection.offsets),
        "documents": write_documents(folder, collection.documents.values()),
        "vocabulary": segment.words.words(),
    }
    digest = write_manifest(folder / SEGMENT, files)
    _flush_folder(folder)
    return Stored(path.resolve(), folder.name, digest)


def _entry(place: Stored, part: Part) -> dict[str, Any]:
    """The entry of a part in the manifest."""
    deleted = [] if part.alive is None else np.flatnonzero(~part.alive).tolist()
    return {"data": place.data, "sha256": place.sha256, "deleted": deleted}


def _check_folder(path: Path) -> list[Path]:
    """The data folders in `path`. Raises InputError if it holds anything that no save leaves there."""
    if not os.path.lexists(path):
        return []
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; give a folder for the index")
    data = []
    with os.scandir(path) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if DATA_NAME.fullmatch(entry.name) and stat.S_ISDIR(mode) and _holds_only_ours(Path(entry)):
                data.append(Path(entry))
            elif entry.name not in {
                MANIFEST,
                MANIFEST_PART,
                *LOCK_FILES,
            } or not stat.S_ISREG(mode):
                raise InputError(
                    f"{path} holds other files ({entry.name!r}); give an empty or new folder for the index"
                )
    if has_index(path) and not _is_our_manifest(path / MANIFEST, data):
        raise InputError(
            f"{path} holds other files ({MANIFEST!r} is not that of an index); "
            "give an empty or new folder for the index"
        )
    return data


def _holds_only_ours(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return all(entry.is_file(follow_symlinks=False) and is_index_file(entry.name) for entry in entries)


def _is_our_manifest(file: Path, data: list[Path]) -> bool:
    """Whether a manifest is an index's; a damaged one is if it lies beside a data folder."""
    try:
        manifest = parse_manifest(file)
    except (ValueError, RecursionError):
        return bool(data)
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT


def _present_manifest(path: Path) -> dict[str, Any] | None:
    """The manifest of the index in `path`; None for a folder without one, and for a damaged one."""
    try:
        return read_manifest(path)
    except IndexFormatError:
        return None


def _remove(folder: Path) -> None:
    """Delete our files in a data folder, and the folder if it is empty then. Others stay."""
    with suppress(OSError):
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        for name in filter(is_index_file, names):
            with suppress(OSError):
                (folder / name).unlink()
        folder.rmdir()


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except PreciseRagError:
        raise
    except (OSError, UnicodeError) as error:
        raise IndexWriteError(f"{path} cannot be written: {error}; it keeps the index it had") from error


def _flush_folder(path: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
