"""A saved index: a manifest that names a folder of arrays, replaced in one step.

    path/manifest.json         format, kind, encoder, settings; shape or size and sha256 of each file
    path/data-…/*.npy          one array per column, memory-mapped on load
    path/data-…/documents.jsonl
    path/precise-rag.lock      locked while a process writes, which precise-rag.lock.holder names

The data folder is complete and on disk before the manifest that names it replaces the old one, so a
crash at any moment leaves the old index or the new one. One process at a time writes; any number reads.
"""

import logging
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from precise_rag.checks import as_path, check_number
from precise_rag.errors import (
    IndexChangedError,
    IndexFormatError,
    IndexWriteError,
    InputError,
    PreciseRagError,
)
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.storage.files import (
    Verify,
    is_index_file,
    read_array,
    read_documents_file,
    write_array,
    write_documents,
)
from precise_rag.index.storage.layout import check_collection
from precise_rag.index.storage.lock import LOCK_FILE, LOCK_FILES, LONGEST_WAIT, WAIT, hold_folder
from precise_rag.index.storage.manifest import (
    DATA_NAME,
    FILES,
    FILES_PART,
    FORMAT,
    MANIFEST,
    VERSION,
    has_index,
    parse_manifest,
    read_manifest,
    write_manifest,
)

_log = logging.getLogger(__name__)


@contextmanager
def locked(path: str | Path, timeout: float = WAIT) -> Iterator[None]:
    """Hold the folder of an index against other writers; it is made if it is not there.

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
            _check_folder(path)
        yield


def write_index(
    path: str | Path,
    manifest: dict[str, Any],
    collection: Collection,
    extras: Columns | None = None,
    *,
    known: set[str] | None = None,
) -> None:
    """Save, replacing an index that is already there.

    extras: arrays that do not go by rows; optional.
    known: data folders of which the manifest must still name one; the new one is added. Default: any.
    Raises InputError if `path` holds anything but an index, or a document cannot be saved as it is;
    IndexChangedError if another writer has replaced the index; IndexLockedError; IndexWriteError.
    """
    path, extras = as_path("path", path), extras or {}
    try:
        check_collection(collection)
    except ValueError as error:
        raise InputError(f"the index cannot be saved: {error}") from error
    with locked(path), _write_errors(path):
        old = _check_folder(path)
        if known is not None and _data_name(path) not in {None, *known}:
            raise IndexChangedError(
                f"{path} was saved by another writer since this index was loaded; "
                "load it again, repeat the change and save, or save into another folder"
            )
        folder = path / f"data-{uuid.uuid4().hex}"
        try:
            folder.mkdir()
            columns = {n: write_array(folder, n, column) for n, column in collection.columns.items()}
            others = {n: write_array(folder, n, array) for n, array in extras.items()}
            offsets = write_array(folder, "offsets", collection.offsets)
            documents = write_documents(folder, collection.documents.values())
            _flush_folder(folder)
            manifest = {
                "format": FORMAT,
                "version": VERSION,
                **manifest,
                "columns": columns,
                "extras": others,
                "offsets": offsets,
                "documents": documents,
                "data": folder.name,
            }
            write_manifest(folder / MANIFEST, manifest)
        except BaseException:
            _remove(folder)
            raise
        if known is not None:
            known.add(folder.name)  # before it is replaced, so that an interruption cannot come between
        try:
            os.replace(folder / MANIFEST, path / MANIFEST)
        except OSError:
            _remove(folder)
            raise
        try:
            _flush_folder(path)
        except OSError as error:
            _log.warning("%s was saved, but the disk did not confirm it: %s", path, error)
        for data in old:
            _remove(data)


def read_index(path: str | Path, verify: Verify = "full") -> tuple[dict[str, Any], Collection, Columns]:
    """Manifest, collection and extra arrays; arrays are memory-mapped, read-only.

    verify: see `Verify`.
    Raises IndexFormatError if the index is missing, damaged or of another version.
    """
    if verify not in ("full", "shape"):
        raise InputError(f"verify must be 'full' or 'shape', got {verify!r}")
    manifest = read_manifest(path)
    while True:
        try:
            return manifest, *_read_data(Path(path) / manifest["data"], manifest, verify)
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            newer = read_manifest(path)
            if newer == manifest:
                raise IndexFormatError(f"{path} is damaged ({error}); build the index again") from error
            manifest = newer  # a writer replaced the index while it was read


def _read_data(folder: Path, manifest: dict[str, Any], verify: Verify) -> tuple[Collection, Columns]:
    if not stat.S_ISDIR(os.lstat(folder).st_mode):
        raise ValueError(f"{folder.name} is not a folder")
    offsets = read_array(folder, "offsets", manifest["offsets"], verify)
    columns = {n: read_array(folder, n, entry, verify) for n, entry in manifest["columns"].items()}
    extras = {n: read_array(folder, n, entry, verify) for n, entry in manifest["extras"].items()}
    documents = read_documents_file(folder, manifest["documents"], verify)
    collection = Collection(documents, offsets, columns)
    check_collection(collection)
    return collection, extras


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
            elif entry.name not in {MANIFEST, FILES, FILES_PART, *LOCK_FILES} or not stat.S_ISREG(mode):
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


def _data_name(path: Path) -> str | None:
    """The data folder of the index in `path`; None if there is no index, or a damaged one."""
    try:
        return str(read_manifest(path)["data"])
    except IndexFormatError:
        return None


def _remove(folder: Path) -> None:
    """Delete a data folder, and no file that we did not write; what cannot be deleted is left there."""
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
